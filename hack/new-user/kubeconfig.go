package main

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig that reaches the cluster as the admin's context does, with the user's certificate in
// place of the admin's credentials, and everything in one file.
func writeKubeconfig(admin clientcmd.ClientConfig, context, file, user string, certificate, key []byte) error {
	config, err := admin.RawConfig()
	if err != nil {
		return fmt.Errorf("reading the cluster admin's kubeconfig: %w", err)
	}
	if context != "" {
		config.CurrentContext = context
	}
	if err := clientcmdapi.MinifyConfig(&config); err != nil {
		return fmt.Errorf("reading the cluster admin's kubeconfig: %w", err)
	}
	cluster := config.Contexts[config.CurrentContext].Cluster
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: certificate, ClientKeyData: key}}
	config.CurrentContext = user + "@" + cluster
	config.Contexts = map[string]*clientcmdapi.Context{config.CurrentContext: {Cluster: cluster, AuthInfo: user}}
	if err := clientcmdapi.FlattenConfig(&config); err != nil {
		return fmt.Errorf("reading the cluster's certificate: %w", err)
	}
	if err := clientcmd.WriteToFile(config, file); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
