package billing

import (
	"database/sql"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite": SQLite itself, in Go
)

// OpenSQLite opens a file of SQLite, or makes it: the ledger of driver sqlite, or the outbox of another. What is committed
// survives a crash of the machine, and readers wait for no writer. Each connection keeps half a MiB of pages: the system has the file.
func OpenSQLite(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=cache_size(-512)&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return db, nil
}
