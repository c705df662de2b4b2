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
	return openSQLite(path, "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=cache_size(-512)&"+
		"_txlock=immediate")
}

// OpenSQLiteReader opens a file of SQLite for questions alone: SQLite refuses each statement that would change a file, and creates
// none. query_only is for files that a statement attaches: they don't inherit the mode.
func OpenSQLiteReader(path string) (*sql.DB, error) {
	return openSQLite(path, "mode=ro&_pragma=busy_timeout(10000)&_pragma=query_only(1)&_pragma=cache_size(-512)")
}

func openSQLite(path, options string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+options)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return db, nil
}
