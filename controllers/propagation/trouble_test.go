package propagation

import (
	"testing"
	"time"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

func TestBackoff(t *testing.T) {
	t.Run("PROP-I8", func(t *testing.T) {
		retry := config.Default().Propagation.Retry
		for range 1000 {
			tries := 1
			for at := time.Duration(0); ; tries++ {
				if at += backoff(retry.Min.Duration, retry.Max.Duration, tries); at > 10*time.Minute {
					break
				}
			}
			if tries > 12 {
				t.Fatalf("%d tries in 10 minutes", tries)
			}
		}
	})
}
