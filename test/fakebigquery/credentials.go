package fakebigquery

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"sync"
)

var key = sync.OnceValues(func() ([]byte, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
})

// Credentials returns the key file of a service account. The server trusts every token.
func (s *Server) Credentials() ([]byte, error) {
	private, err := key()
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{"type": "service_account", "project_id": Project, "private_key_id": "1",
		"private_key":  string(private),
		"client_email": "warren@" + Project + ".iam.gserviceaccount.com", "client_id": "1", "token_uri": s.http.URL + "/token"})
}

func (s *Server) giveToken(*http.Request) (any, *apiError) {
	return map[string]any{"access_token": "ya29.fake", "token_type": "Bearer", "expires_in": 3600}, nil
}
