package command

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// Build says from what the program was built.
type Build struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// NewBuild fills in what the linker was not told from what the Go tool wrote into the program.
func NewBuild(version, commit string) Build {
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" {
			version = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && commit == "" {
				commit = setting.Value
			}
		}
	}
	if version == "" {
		version = "(devel)"
	}
	return Build{Version: version, Commit: commit, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// versions is what version prints as JSON or YAML.
type versions struct {
	Client Build         `json:"clientVersion"`
	Server *version.Info `json:"serverVersion,omitempty"`
}

// serverVersionPatience bounds the wait for a server that may not be there; --request-timeout goes over it.
const serverVersionPatience = 5 * time.Second

// versionCommand is the command "version".
func (p *plugin) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the plugin and, where it can be reached, of the API server",
		Args:  cobra.NoArgs,
	}
	clientOnly := cmd.Flags().Bool("client", false, "Don't ask the API server")
	output := addChoice(cmd, "output", "o", "", "Output format", outputJSON, outputYAML)
	cmd.RunE = func(*cobra.Command, []string) error {
		all := versions{Client: p.build}
		if !*clientOnly {
			server, err := p.serverVersion()
			if err != nil {
				terminal.Fprintln(p.streams.ErrOut, "Warning: the server's version is unknown: "+failure.Sentence(err))
			}
			all.Server = server
		}
		return p.printVersions(all, output.value)
	}
	return cmd
}

func (p *plugin) serverVersion() (*version.Info, error) {
	config, err := p.restConfig()
	if err != nil {
		return nil, err
	}
	if config.Timeout == 0 {
		config.Timeout = serverVersionPatience
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return api.ServerVersion()
}

func (p *plugin) printVersions(all versions, format string) error {
	var text bytes.Buffer
	if format != "" {
		if err := writeAs(&text, format, all); err != nil {
			return err
		}
	} else {
		terminal.Fprintln(&text, "Client Version:", all.Client.Version)
		if all.Client.Commit != "" {
			terminal.Fprintln(&text, "Commit:", all.Client.Commit)
		}
		terminal.Fprintln(&text, "Go Version:", all.Client.GoVersion)
		if all.Server != nil {
			terminal.Fprintln(&text, "Server Version:", all.Server.GitVersion)
		}
	}
	_, err := text.WriteTo(p.streams.Out)
	return err
}
