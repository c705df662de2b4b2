//go:build !linux

package process

import "time"

// CPU is known on Linux alone.
func (p *Process) CPU() time.Duration { return 0 }
