package controlplane

import (
	"crypto/rand"
	"encoding/csv"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// credentials are the secrets of a control plane: the API server's serving certificate, the key that signs service-account tokens,
// and a token for each user.
type credentials struct {
	dir    string
	caPEM  []byte
	tokens map[string]string // user to token
}

func (c *credentials) path(name string) string { return filepath.Join(c.dir, name) }

// writeCredentials makes all credentials, and writes all files but the kubeconfigs, which need the API server's address.
func writeCredentials(dir string, users map[string][]string) (*credentials, error) {
	c := &credentials{dir: dir, tokens: map[string]string{}}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("making the API server's certificate: %w", err)
	}
	// certPEM has the certificate and the CA that signed it; both may be in a CA bundle.
	c.caPEM = certPEM
	signer, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, fmt.Errorf("making the key of service accounts: %w", err)
	}
	tokens, err := c.tokenFile(users)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		"apiserver.crt": certPEM, "apiserver.key": keyPEM, "sa.key": signer, "tokens.csv": tokens,
	} {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// tokenFile gives each user a random token and returns the API server's token file.
func (c *credentials) tokenFile(users map[string][]string) ([]byte, error) {
	var file strings.Builder
	w := csv.NewWriter(&file)
	for _, name := range slices.Sorted(maps.Keys(users)) {
		c.tokens[name] = rand.Text()
		if err := w.Write([]string{c.tokens[name], name, name, strings.Join(users[name], ",")}); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return []byte(file.String()), w.Error()
}

// writeKubeconfigs writes one kubeconfig per user.
func (c *credentials) writeKubeconfigs(access Access, server string) error {
	for name, token := range c.tokens {
		config := clientcmdapi.NewConfig()
		config.Clusters["warren"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: c.caPEM}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
		config.Contexts["warren"] = &clientcmdapi.Context{Cluster: "warren", AuthInfo: name}
		config.CurrentContext = "warren"
		if err := clientcmd.WriteToFile(*config, access.Kubeconfig(name)); err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
		}
	}
	return nil
}
