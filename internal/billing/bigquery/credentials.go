package bigquery

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"google.golang.org/api/option"
)

// kinds are the types of credentials that a file may hold.
var kinds = []option.CredentialsType{option.ServiceAccount, option.ExternalAccount, option.ImpersonatedServiceAccount,
	option.AuthorizedUser}

// correctSecret is the next step for a file that holds something else than credentials that the exporter can use.
const correctSecret = "correct the Secret that holds the file"

// buildOptions returns the options for Google's client. It reads the credentials file anew at each call; a missing or
// malformed file is an Error with reason "credentials".
func (o Options) buildOptions() (options []option.ClientOption, err error) {
	if o.Endpoint != "" {
		options = append(options, option.WithEndpoint(o.Endpoint))
	}
	if o.CredentialsFile == "" {
		return options, nil
	}
	refused := func(err error) error {
		return &Error{reason: reasonCredentials, err: fmt.Errorf("billing.bigquery.credentialsFile: %w", err)}
	}
	text, err := os.ReadFile(o.CredentialsFile)
	if err != nil {
		return nil, refused(fmt.Errorf("%w; mount the Secret that holds it", err))
	}
	var file struct {
		Type option.CredentialsType `json:"type"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, refused(fmt.Errorf("%s is no JSON of credentials; "+correctSecret, o.CredentialsFile)) // json's error could quote the key
	}
	if !slices.Contains(kinds, file.Type) {
		return nil, refused(fmt.Errorf("%s holds credentials of type %q, not one of %q; "+correctSecret, o.CredentialsFile, file.Type, kinds))
	}
	return append(options, option.WithAuthCredentialsJSON(file.Type, text)), nil
}
