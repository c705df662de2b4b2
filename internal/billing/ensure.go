package billing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Ensure makes the table and the view where they are missing, and compares them where they are: a *SchemaError names every
// column that is missing or of another type. A column of somebody else's may be there if a row needn't state it.
func (s *Store) Ensure(ctx context.Context) error {
	if err := s.create(ctx, s.options.Table, s.text.table); err != nil {
		return err
	}
	if err := s.verifyTable(ctx); err != nil {
		return err
	}
	if err := s.create(ctx, s.view(), s.text.view); err != nil {
		return err
	}
	return s.verifyView(ctx)
}

// Verify is Ensure for somebody who may make nothing.
func (s *Store) Verify(ctx context.Context) error {
	if err := s.verifyTable(ctx); err != nil {
		return err
	}
	return s.verifyView(ctx)
}

func (s *Store) view() string { return s.options.Table + periodsSuffix }

// create runs the text unless the table or view is there. That somebody else was quicker is no error.
func (s *Store) create(ctx context.Context, name, text string) error {
	found, err := s.columns(ctx, name)
	if err != nil || len(found) > 0 {
		return err
	}
	if _, err := s.db.ExecContext(ctx, text); err != nil {
		if found, again := s.columns(ctx, name); again == nil && len(found) > 0 {
			return nil
		}
		return fmt.Errorf("creating %s: %w", name, err)
	}
	return nil
}

// column of a table, as the engine tells.
type column struct {
	name, kind string
	// required: a row must state it.
	required bool
}

func (s *Store) columns(ctx context.Context, table string) (columns []column, err error) {
	rows, err := s.db.QueryContext(ctx, s.text.columns, table)
	if err != nil {
		return nil, fmt.Errorf("reading the columns of %s: %w", table, err)
	}
	defer rows.Close()
	for rows.Next() {
		var c column
		var required int
		if err := rows.Scan(&c.name, &c.kind, &required); err != nil {
			return nil, fmt.Errorf("reading the columns of %s: %w", table, err)
		}
		c.required = required == 1
		columns = append(columns, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the columns of %s: %w", table, err)
	}
	return columns, nil
}

func (s *Store) verifyTable(ctx context.Context) error {
	found, err := s.columns(ctx, s.options.Table)
	if err != nil {
		return err
	}
	problems := missing(found, eventColumns)
	for _, c := range found {
		want, ours := s.dialect.types[c.name]
		switch {
		case ours && c.kind != want:
			problems = append(problems, fmt.Sprintf("column %s is %s, it must be %s", c.name, cmp.Or(c.kind, "without a type"), want))
		case !ours && c.required:
			problems = append(problems, fmt.Sprintf("column %s is not ours: it must allow NULL or have a default", c.name))
		}
	}
	return schemaError(s.options.Table, found, problems)
}

func (s *Store) verifyView(ctx context.Context) error {
	found, err := s.columns(ctx, s.view())
	if err != nil {
		return err
	}
	return schemaError(s.view(), found, missing(found, periodColumns))
}

func missing(found []column, want []string) (problems []string) {
	for _, name := range want {
		if !slices.ContainsFunc(found, func(c column) bool { return c.name == name }) {
			problems = append(problems, fmt.Sprintf("column %s is missing", name))
		}
	}
	return problems
}

func schemaError(table string, found []column, problems []string) error {
	if len(found) == 0 {
		problems = []string{"it is missing, or this account may not see it"}
	}
	if len(problems) == 0 {
		return nil
	}
	return &SchemaError{Table: table, Problems: problems}
}
