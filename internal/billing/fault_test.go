package billing_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
)

// onlyConn returns a ledger with one connection, so that a PRAGMA applies to every statement.
func onlyConn(t *testing.T) (*billing.Store, *sql.DB, engine) {
	t.Helper()
	e := onSQLite(t)
	db := e.open(t)
	db.SetMaxOpenConns(1)
	store := e.store(t, db)
	if err := store.Schema().Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, "PRAGMA busy_timeout = 50")
	return store, db, e
}

func TestFileFaults(t *testing.T) {
	for name, c := range map[string]struct {
		happens, passes func(t *testing.T, db *sql.DB, e engine)
		trouble         billing.Trouble
		advice          string
	}{
		"the disk is full": {
			func(t *testing.T, db *sql.DB, _ engine) { mustExec(t, db, "PRAGMA max_page_count = 1") },
			func(t *testing.T, db *sql.DB, _ engine) { mustExec(t, db, "PRAGMA max_page_count = 1000000") },
			billing.Unavailable, "free space on the volume of billing.sqlite.path, or enlarge its PersistentVolumeClaim",
		},
		"the file is read-only": {
			func(t *testing.T, db *sql.DB, _ engine) { mustExec(t, db, "PRAGMA query_only = 1") },
			func(t *testing.T, db *sql.DB, _ engine) { mustExec(t, db, "PRAGMA query_only = 0") },
			billing.Denied, "mount the volume of billing.sqlite.path so that the exporter may write there",
		},
		"another process holds the file": {
			func(t *testing.T, _ *sql.DB, e engine) { mustExec(t, holder(t, e), "BEGIN IMMEDIATE") },
			func(t *testing.T, _ *sql.DB, e engine) { mustExec(t, holders[e.dsn], "ROLLBACK") },
			billing.Unavailable, "end it, because only one exporter may write this file",
		},
	} {
		t.Run("BILL-66 a full disk or a lock (WarehouseUnavailable), or a read-only file (AccessDenied), stores no part of a batch; "+
			"the error says what to do; later each change is stored once: "+name, func(t *testing.T) {
			store, db, e := onlyConn(t)
			c.happens(t, db, e)
			_, err := store.Append(t.Context(), tenants(500))
			if err == nil || store.Trouble(err) != c.trouble || !strings.Contains(store.Explain(err).Error(), c.advice) {
				t.Errorf("%s: %v", store.Trouble(err), store.Explain(err))
			}
			c.passes(t, db, e)
			if added := appended(t, store, tenants(500)...); added != 500 || count(t, db, "ledger") != 500 {
				t.Errorf("%d rows were new, %d are there", added, count(t, db, "ledger"))
			}
		})
	}
	for name, damage := range map[string]func(path string, size int64) error{
		"is cut off": func(path string, size int64) error { return os.Truncate(path, size/2) },
		"is no database": func(path string, _ int64) error {
			return os.WriteFile(path, []byte(strings.Repeat("no ledger ", 1000)), 0o600)
		},
		"is damaged in a page": func(path string, size int64) error { return overwrite(path, 4096, size) },
	} {
		t.Run("BILL-66 a file that is cut off, damaged or no database is a SchemaMismatch, and the error says what to do; "+
			"repaired, it gets the missing rows: "+name, func(t *testing.T) {
			store, db, e := onlyConn(t)
			appended(t, store, tenants(500)...)
			mustExec(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(e.dsn)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(e.dsn)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(e.dsn, info.Size()); err != nil {
				t.Fatal(err)
			}
			damaged := e.open(t)
			store = e.store(t, damaged)
			err = store.Schema().Ensure(t.Context())
			if err == nil {
				_, err = store.Append(t.Context(), tenants(500))
			}
			if err == nil || store.Trouble(err) != billing.Mismatch || !strings.Contains(store.Explain(err).Error(),
				"restore a copy of it; or move it away") {
				t.Errorf("%s: %v", store.Trouble(err), store.Explain(err))
			}
			putBack(t, damaged, e.dsn, whole)
			db = e.open(t)
			if added := appended(t, e.store(t, db), tenants(600)...); added != 100 || count(t, db, "ledger") != 600 {
				t.Errorf("%d rows were new, %d are there", added, count(t, db, "ledger"))
			}
		})
	}
}

// putBack replaces a damaged file by a copy that is whole, as the error message advises.
func putBack(t *testing.T, damaged *sql.DB, path string, whole []byte) {
	t.Helper()
	_ = damaged.Close() // it may report the damage again
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
}

// holders has the connections by which other processes hold files, by file.
var holders = map[string]*sql.DB{}

func holder(t *testing.T, e engine) *sql.DB {
	t.Helper()
	db := e.open(t)
	db.SetMaxOpenConns(1)
	holders[e.dsn] = db
	return db
}

func overwrite(path string, from, until int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteAt([]byte(strings.Repeat("\xff", int(until-from))), from)
	return err
}

// serverWith starts a server that speaks PostgreSQL's protocol up to TLS. Its certificate is valid for 127.0.0.1, except for what flaw
// changes. It returns the data source name of a client that trusts the certificate or, without trusted, another one.
func serverWith(t *testing.T, flaw func(*x509.Certificate), trusted bool) string {
	t.Helper()
	sign := func(change func(*x509.Certificate)) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
		change(template)
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	der, key := sign(flaw)
	authority := der
	if !trusted {
		authority, _ = sign(func(*x509.Certificate) {})
	}
	root := filepath.Join(t.TempDir(), "root.crt")
	if err := os.WriteFile(root, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority}), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil { // SSLRequest
					return
				}
				_, _ = conn.Write([]byte("S"))
				secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
					MinVersion: tls.VersionTLS12})
				_ = secure.Handshake()
			}()
		}
	}()
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "host=" + host + " port=" + port + " user=warren dbname=warren sslmode=verify-full sslrootcert=" + root
}

func TestServerCertificate(t *testing.T) {
	for name, tc := range map[string]struct {
		flaw      func(*x509.Certificate)
		untrusted bool
		advice    string
	}{
		"BILL-67 the certificate of PostgreSQL has expired: AccessDenied, and the message says to renew it or correct the clock": {
			flaw: func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = nine.AddDate(-9, 0, 0), nine.AddDate(-9, 0, 0).Add(time.Hour)
			},
			advice: "renew the certificate of the warehouse's server, or correct the clock of this node",
		},
		"BILL-67 the certificate of PostgreSQL is of an unknown authority: AccessDenied, and the message says where to name the CA": {
			flaw: func(*x509.Certificate) {}, untrusted: true,
			advice: "mount the CA certificate that signed the server's certificate, and name its file: for driver postgres in the data source name",
		},
		"BILL-67 the certificate of PostgreSQL is of another name: AccessDenied, and the message says to use its host name": {
			flaw:   func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} },
			advice: "use the host name that the server's certificate has",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine{dialect: billing.Postgres, dsn: serverWith(t, tc.flaw, !tc.untrusted)}
			store := e.store(t, e.open(t))
			_, err := store.Append(t.Context(), tenants(1))
			if err == nil || store.Trouble(err) != billing.Denied || !strings.Contains(store.Explain(err).Error(), tc.advice) {
				t.Errorf("%s: %v", store.Trouble(err), store.Explain(err))
			}
		})
	}
}
