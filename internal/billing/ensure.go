package billing

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Ensure makes the table and what belongs to it where that is missing, and compares it where it is there: a *SchemaError names
// every column that is missing or of another type. A column of somebody else's may be there if a row needn't state it. A view
// of an older version is replaced; one of a newer version is left.
func (s *Store) Ensure(ctx context.Context) error {
	if err := s.create(ctx, s.options.Table, s.text.table); err != nil {
		return err
	}
	if err := s.verifyTable(ctx); err != nil {
		return err
	}
	for _, part := range []struct{ suffix, text string }{
		{indexSuffix, s.text.index}, {runsSuffix, s.text.runs}, {reasonsSuffix, s.text.reasons},
	} {
		if part.text == "" {
			continue
		}
		if err := s.create(ctx, s.options.Table+part.suffix, part.text); err != nil {
			return err
		}
	}
	if err := s.ensureView(ctx); err != nil {
		return err
	}
	return s.Verify(ctx)
}

// Verify is Ensure for somebody who may make nothing.
func (s *Store) Verify(ctx context.Context) error {
	if err := s.verifyTable(ctx); err != nil {
		return err
	}
	if err := s.verifyView(ctx); err != nil {
		return err
	}
	version, err := s.versionOfView(ctx)
	if err != nil {
		return err
	}
	if version < viewVersion {
		return &SchemaError{Table: s.view(), Problems: []string{fmt.Sprintf("it is of version %d, this program needs version %d: "+
			"run what `manager billing ddl` prints", version, viewVersion)}}
	}
	for suffix, columns := range map[string][]string{runsSuffix: runColumns, reasonsSuffix: reasonColumns} {
		found, err := s.columns(ctx, s.options.Table+suffix)
		if err != nil {
			return err
		}
		if err := schemaError(s.options.Table+suffix, found, missing(found, columns)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) view() string { return s.options.Table + periodsSuffix }

// create runs the text unless the table, view or index is there. That somebody else was quicker is no error.
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

// ensureView makes the view, or replaces an older version of ours. A view of somebody else's is left, for verifyView to tell of.
func (s *Store) ensureView(ctx context.Context) error {
	found, err := s.columns(ctx, s.view())
	if err != nil || len(found) > 0 && len(missing(found, periodColumns)) > 0 {
		return err
	}
	version, err := s.versionOfView(ctx)
	if err != nil || version >= viewVersion {
		return err
	}
	if err := s.replaceView(ctx); err != nil {
		if version, again := s.versionOfView(ctx); again == nil && version >= viewVersion {
			return nil // somebody else was quicker
		}
		return fmt.Errorf("creating %s: %w", s.view(), err)
	}
	return nil
}

// replaceView is one transaction where the engine needs two statements, so that no reader finds the view missing.
func (s *Store) replaceView(ctx context.Context) error {
	steps := slices.DeleteFunc([]string{s.text.dropView, s.text.view, s.text.describeView}, func(text string) bool { return text == "" })
	if len(steps) == 1 {
		_, err := s.db.ExecContext(ctx, steps[0])
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	for _, text := range steps {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return tx.Commit()
}

var versionText = regexp.MustCompile(viewMark + `(\d+)`)

// versionOfView is 0 where there is no view, and 1 where ours bears no version, as the first didn't.
func (s *Store) versionOfView(ctx context.Context) (int, error) {
	found, err := s.columns(ctx, s.view())
	if err != nil || len(found) == 0 {
		return 0, err
	}
	var text string
	if err := s.db.QueryRowContext(ctx, s.text.viewVersion, s.view()).Scan(&text); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("reading the version of %s: %w", s.view(), err)
	}
	if match := versionText.FindStringSubmatch(text); match != nil {
		return strconv.Atoi(match[1])
	}
	return 1, nil
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
