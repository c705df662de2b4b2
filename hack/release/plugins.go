package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// plugin is one of kubectl's plugins, as its krew manifest describes it.
type plugin struct{ name, short, description string }

var plugins = []plugin{
	{
		"warren", "Tenants and trees of namespaces with Warren",
		"Makes tenants and sub-namespaces, draws trees, traces copies to their sources, says who may do what and why,\nand checks whether the " +
			"operator is installed soundly.",
	},
	{
		"sudo", "One command with the rights of a tenant's sudoers",
		"Runs one command of kubectl as a member of the group TENANT-sudoers, as Warren lets the tenant's sudoers do.",
	},
}

// krewPlugin is the manifest by which krew installs a plugin: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector map[string]map[string]string `json:"selector"`
	URI      string                       `json:"uri"`
	SHA256   string                       `json:"sha256"`
	Bin      string                       `json:"bin"`
}

// packPlugins writes an archive of each plugin for each platform, and its krew manifest.
func (r release) packPlugins() error {
	folders, err := filepath.Glob(filepath.Join(r.plugins, "*", "*", "kubectl-warren*"))
	if err != nil {
		return fmt.Errorf("looking for plugins: %w", err)
	}
	for _, p := range plugins {
		manifest := krewPlugin{
			APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": p.name},
			Spec: krewSpec{Version: r.version, Homepage: repository, ShortDescription: p.short, Description: p.description},
		}
		for _, folder := range folders {
			packed, err := r.pack(p, filepath.Dir(folder))
			if err != nil {
				return err
			}
			manifest.Spec.Platforms = append(manifest.Spec.Platforms, packed)
		}
		text, err := yaml.Marshal(manifest)
		if err != nil {
			return fmt.Errorf("writing the krew manifest of %s: %w", p.name, err)
		}
		if err := r.write("krew/"+p.name+".yaml", text); err != nil {
			return err
		}
	}
	return nil
}

// pack writes the archive of a plugin, which is in a folder such as linux/amd64.
func (r release) pack(p plugin, folder string) (krewPlatform, error) {
	goos, arch := filepath.Base(filepath.Dir(folder)), filepath.Base(folder)
	bin := "kubectl-" + p.name
	if goos == "windows" {
		bin += ".exe"
	}
	content, err := archiveOf(filepath.Join(folder, bin), "LICENSE")
	if err != nil {
		return krewPlatform{}, err
	}
	name := fmt.Sprintf("kubectl-%s-%s-%s-%s.tar.gz", p.name, r.version, goos, arch)
	sum := sha256.Sum256(content)
	return krewPlatform{
		Selector: map[string]map[string]string{"matchLabels": {"os": goos, "arch": arch}},
		URI:      repository + "/releases/download/" + r.version + "/" + name, SHA256: hex.EncodeToString(sum[:]), Bin: bin,
	}, r.write(name, content)
}

// archiveOf returns an archive of files, the first of which is a program. Its headers do not depend on the machine.
func archiveOf(files ...string) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	mode := int64(0o755)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("packing a plugin: %w", err)
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.Base(file), Mode: mode, Size: int64(len(content)), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file, err)
		}
		if _, err := w.Write(content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file, err)
		}
		mode = 0o644
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing %v: %w", files, err)
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("packing %v: %w", files, err)
	}
	return out.Bytes(), nil
}
