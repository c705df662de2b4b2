package fakebigquery

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/warren-tenancy/warren/internal/billing/bigquery"
)

var key = sync.OnceValues(func() ([]byte, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
})

// WriteCredentials writes the key file of a service account. The server trusts every token.
func (s *Server) WriteCredentials(file string) error {
	private, err := key()
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]string{"type": "service_account", "project_id": Project, "private_key_id": "1",
		"private_key":  string(private),
		"client_email": "warren@" + Project + ".iam.gserviceaccount.com", "client_id": "1", "token_uri": s.http.URL + "/token"})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// Options are the driver's, for the server at this endpoint.
func Options(endpoint, keyFile string) bigquery.Options {
	return bigquery.Options{Project: Project, Dataset: Dataset, Location: Location, CredentialsFile: keyFile, Endpoint: endpoint,
		StatementTimeout: time.Minute, MaximumBytesBilled: 1 << 30}
}

func (s *Server) giveToken(*http.Request) (any, *apiError) {
	return map[string]any{"access_token": "ya29.fake", "token_type": "Bearer", "expires_in": 3600}, nil
}
