package billing

import "database/sql"

// DB returns the store's database, so that tests read it by SQL.
func (s *Store) DB() *sql.DB { return s.db }
