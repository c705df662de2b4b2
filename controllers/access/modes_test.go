package access

import (
	"fmt"
	"testing"
)

// If a source does not sync, controller-runtime prints it with %v. String keeps that from reading fields that a look may be writing.
func TestNameOfModesInErrors(t *testing.T) {
	if got := fmt.Sprint(newModes(&Reconciler{})); got != "mode of sudo" {
		t.Error(got)
	}
}
