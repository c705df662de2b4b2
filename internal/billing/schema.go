package billing

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// Schema creates and verifies the tables and views of a ledger. It is safe for concurrent use, by many processes too.
type Schema struct {
	db      *sql.DB
	dialect Dialect
	// table is the name of the table of events, with which the other names begin.
	table string
	text  statements
}

// Ensure creates the table, its index, the table of runs, and the view where they are missing, and checks those that
// exist: a
// *SchemaError names every column that is missing or, in the table of events, has another type. Further columns are allowed if an
// INSERT needn't state them. A view of a lower version is replaced; a view of a higher version is left.
func (s *Schema) Ensure(ctx context.Context) error {
	if err := s.createObject(ctx, s.table, s.text.table); err != nil {
		return err
	}
	if err := s.verifyEvents(ctx); err != nil {
		return err
	}
	for _, part := range []struct{ suffix, text string }{
		{indexSuffix, s.text.index}, {runsSuffix, s.text.runs},
	} {
		if part.text == "" {
			continue
		}
		if err := s.createObject(ctx, s.table+part.suffix, part.text); err != nil {
			return err
		}
	}
	if err := s.ensureView(ctx); err != nil {
		return err
	}
	return s.Verify(ctx)
}

// Verify checks as Ensure does, and creates nothing.
func (s *Schema) Verify(ctx context.Context) error {
	if err := s.verifyEvents(ctx); err != nil {
		return err
	}
	if err := s.verifyView(ctx); err != nil {
		return err
	}
	return s.verifyRuns(ctx)
}

func (s *Schema) verifyRuns(ctx context.Context) error {
	found, err := s.readColumns(ctx, s.table+runsSuffix)
	if err != nil {
		return err
	}
	return schemaError(s.table+runsSuffix, found, append(missingColumns(found, runColumns), foreignRequired(found, runColumns)...))
}

// VerifyTables checks the tables alone: the view of a ledger that is only copied may be an older one.
func (s *Schema) VerifyTables(ctx context.Context) error {
	if err := s.verifyEvents(ctx); err != nil {
		return err
	}
	return s.verifyRuns(ctx)
}

// createObject runs the text unless the table, view or index exists. If another process creates it at the same time,
// that is no error.
func (s *Schema) createObject(ctx context.Context, name, text string) error {
	found, err := s.readColumns(ctx, name)
	if err != nil || len(found) > 0 {
		return err
	}
	if _, err := s.db.ExecContext(ctx, text); err != nil {
		if found, again := s.readColumns(ctx, name); again == nil && len(found) > 0 {
			return nil
		}
		return fmt.Errorf("creating %s: %w", name, err)
	}
	return nil
}

// column is a column of a table, as the engine describes it.
type column struct {
	name, kind string
	// required reports that an INSERT must state the column.
	required bool
}

func (s *Schema) readColumns(ctx context.Context, table string) ([]column, error) {
	return collectAll(wrapErrors(queryRows(ctx, s.db, s.text.columns, func(rows *sql.Rows) (c column, err error) {
		var required int
		err = rows.Scan(&c.name, &c.kind, &required)
		c.required = required == 1
		return c, err
	}, table), func(err error) error { return fmt.Errorf("reading the columns of %s: %w", table, err) }))
}

func (s *Schema) verifyEvents(ctx context.Context) error {
	found, err := s.readColumns(ctx, s.table)
	if err != nil {
		return err
	}
	problems := missingColumns(found, eventColumns)
	for _, c := range found {
		if want, ours := s.dialect.types[c.name]; ours && c.kind != want {
			problems = append(problems, fmt.Sprintf("column %s is %s, it must be %s", c.name, cmp.Or(c.kind, "without a type"), want))
		}
	}
	return schemaError(s.table, found, append(problems, foreignRequired(found, eventColumns)...))
}

func missingColumns(found []column, want []string) (problems []string) {
	for _, name := range want {
		if !slices.ContainsFunc(found, func(c column) bool { return c.name == name }) {
			problems = append(problems, fmt.Sprintf("column %s is missing", name))
		}
	}
	return problems
}

// foreignRequired returns the columns that are not in ours and that an INSERT must state, so that every INSERT of
// Warren fails.
func foreignRequired(found []column, ours []string) (problems []string) {
	for _, c := range found {
		if c.required && !slices.Contains(ours, c.name) {
			problems = append(problems, fmt.Sprintf("column %s is not one of Warren's: it must allow NULL or have a default", c.name))
		}
	}
	return problems
}

func schemaError(table string, found []column, problems []string) error {
	if len(found) == 0 {
		problems = []string{"the table is missing, or this account may not see it"}
	}
	if len(problems) == 0 {
		return nil
	}
	return &SchemaError{Table: table, Problems: problems}
}
