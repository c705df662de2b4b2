// Package kubectl is what our plugins need of kubectl: its way to reach the API server, the program itself, which they
// run, and its flags.
package kubectl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// variable is the environment variable that names the kubectl to run.
const variable = "KUBECTL"

// Find returns the path of the program that KUBECTL names or, if KUBECTL is empty, of the kubectl in the PATH.
func Find() (string, error) {
	named := os.Getenv(variable)
	if named == "" {
		path, err := exec.LookPath("kubectl")
		if err != nil {
			return "", errors.New("kubectl not found; set KUBECTL")
		}
		return path, nil
	}
	path, err := exec.LookPath(named)
	if err != nil {
		return "", fmt.Errorf("kubectl not found; set KUBECTL, which is %q now", named)
	}
	return path, nil
}
