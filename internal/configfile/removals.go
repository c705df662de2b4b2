package configfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// removalsHashSize is the length of RemovalsHash in hexadecimal digits.
const removalsHashSize = 12

var removalsHash = regexp.MustCompile(`^[0-9a-f]{12}$`)

// RemovalsHash identifies the content of the file without AcceptRemovals: two files with the same settings have the
// same hash. Feature gates don't count: they take nothing away.
func RemovalsHash(c *config.OperatorConfiguration) string {
	same := *c
	same.AcceptRemovals, same.FeatureGates = "", nil
	data, err := json.Marshal(same)
	if err != nil {
		panic(err) // the types of the file hold nothing that JSON lacks
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:removalsHashSize]
}

func validateRemovals(at *field.Path, hash string) field.ErrorList {
	if hash == "" || removalsHash.MatchString(hash) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, hash, "must be the 12 hexadecimal digits in the message that refused the file; see kubectl "+
		"warren config diff")}
}
