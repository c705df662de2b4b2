package exporter_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// BenchmarkMemory is part of `make bench-billing`: it runs the exporter as a process, with SQLite and a stand-in for the API server. Once
// all is exported and reported, its memory must be within 64 MiB and 1 KiB for each namespace. The program with Google's client may use 16
// MiB more.
func BenchmarkMemory(b *testing.B) {
	manager, err := devcluster.BuildManager(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := devcluster.BuildBilling(b.Context(), programs.Billing, programs.BigQuery); err != nil {
		b.Fatal(err)
	}
	for program, budget := range map[string]float64{programs.Billing: 64, programs.BigQuery: 80} { // in MiB
		for _, namespaces := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("%s, %d namespaces", program, namespaces), func(b *testing.B) {
				measureMemory(b, filepath.Join(filepath.Dir(manager), program), namespaces, budget)
			})
		}
	}
}

func measureMemory(b *testing.B, program string, namespaces int, budget float64) {
	b.Helper()
	server := httptest.NewServer(&standIn{namespaces: namespaces})
	b.Cleanup(server.Close)
	ledger := filepath.Join(inMemory(b), "billing.db")
	p := startExporter(b, program, server.URL, fmt.Sprintf("  driver: sqlite\n  sqlite: {path: %q}\n", ledger))
	waitForLedger(b, p, ledger, namespaces)
	peak, now, files := settled(b, p.PID())
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(peak, "MiB-peak")
	b.ReportMetric(now, "MiB-now")
	b.ReportMetric(files, "MiB-of-the-binary")
	judge(b, peak, now, files, budget+float64(namespaces)/1024)
}

func judge(b *testing.B, peak, now, files, budget float64) {
	b.Helper()
	verdict := "PASS"
	if now > budget {
		verdict = "FAIL"
		b.Fail()
	}
	fmt.Printf("%s: %.1f MiB at rest (%.1f of them pages of the binary), %.1f at most; allowed %.1f %s\n", b.Name(), now, files,
		peak, budget, verdict)
}

// inMemory returns a folder in memory, if the machine has one: otherwise each commit of SQLite would wait for the disk, which is not
// measured here.
func inMemory(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "warren-billing-") //nolint:usetesting // in memory
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// startExporter starts the exporter. ledger has the lines of the configuration that name the ledger.
func startExporter(b *testing.B, program, server, ledger string) *process.Process {
	b.Helper()
	dir := b.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		return file
	}
	config := write("config.yaml", "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\nbilling:\n"+ledger+
		"  flushInterval: 1s\n")
	access := write("kubeconfig",
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`+
			`"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{"token":"t"}}]}`, server))
	p := process.New(program, []string{"billing-exporter", "--kubeconfig=" + access, "--config=" + config, "--metrics-bind-address=0",
		"--health-probe-bind-address=0"},
		nil, filepath.Join(dir, "log"))
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Kill() })
	return p
}

// waitForLedger waits until the ledger has a period of each namespace.
func waitForLedger(b *testing.B, p *process.Process, file string, namespaces int) {
	b.Helper()
	var rows int
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		db, err := billing.OpenSQLite(file)
		if err != nil {
			b.Fatal(err)
		}
		_ = db.QueryRowContext(b.Context(), "SELECT count(*) FROM tenant_billing").Scan(&rows)
		_ = db.Close()
		if rows == namespaces {
			return
		}
	}
	b.Fatalf("%d of %d rows\n%s", rows, namespaces, p.LogTail(6))
}

// settled returns, in MiB, how much memory a process has used at most, how much it uses at rest, and how much of that are pages of its
// binary. The system can drop such pages. At rest is the lowest value within half a minute, because the exporter frees the memory of a
// burst of work.
func settled(b *testing.B, pid int) (peak, now, files float64) {
	b.Helper()
	for range 30 {
		time.Sleep(time.Second)
		running, err := procfs.NewProc(pid)
		if err != nil {
			b.Skipf("this machine tells nothing of processes: %v", err)
		}
		status, err := running.NewStatus()
		if err != nil {
			b.Fatal(err)
		}
		if resident := inMiB(status.VmRSS); now == 0 || resident < now {
			now, files = resident, inMiB(status.RssFile)
		}
		peak = inMiB(status.VmHWM)
	}
	return peak, now, files
}

func inMiB(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
