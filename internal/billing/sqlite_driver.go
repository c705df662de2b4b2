package billing

import (
	"database/sql"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite": SQLite itself, in Go
)

// OpenSQLite opens or creates a file of SQLite: the ledger of driver sqlite. Committed transactions survive a crash of
// the machine, and readers wait for no writer. Each connection caches 512 KiB of pages only, because the operating
// system caches the file.
func OpenSQLite(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=cache_size(-512)&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return db, nil
}
