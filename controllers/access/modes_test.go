package access

import (
	"fmt"
	"testing"
)

// Controllers print a source that does not sync, while a look may change it.
func TestNameOfModesInErrors(t *testing.T) {
	if got := fmt.Sprint(newModes(&Reconciler{})); got != "mode of sudo" {
		t.Error(got)
	}
}
