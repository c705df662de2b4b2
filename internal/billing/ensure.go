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

// Ensure creates the table, its index, the tables of runs and reasons, and the view where they are missing, and checks those that
// exist: a *SchemaError names every column that is missing or has another type. Further columns are allowed if an INSERT needn't
// state them. A view of a lower version is replaced; a view of a higher version is left.
func (s *Store) Ensure(ctx context.Context) error {
	if err := s.create(ctx, s.options.Table, s.text.table); err != nil {
		return err
	}
	if err := s.verifyEvents(ctx); err != nil {
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
	if err := s.ensureView(ctx, s.periodsView()); err != nil {
		return err
	}
	return s.Verify(ctx)
}

// EnsureUsage does for the table and view of hours what Ensure does for those of events. Callers call Ensure first.
func (s *Store) EnsureUsage(ctx context.Context) error {
	if err := s.create(ctx, s.options.Table+usageSuffix, s.text.usageTable); err != nil {
		return err
	}
	if err := s.verifyTable(ctx, s.options.Table+usageSuffix, usageColumns, s.dialect.usageTypes); err != nil {
		return err
	}
	if s.text.usageIndex != "" {
		if err := s.create(ctx, s.options.Table+usageIndexSuffix, s.text.usageIndex); err != nil {
			return err
		}
	}
	if err := s.ensureView(ctx, s.hoursView()); err != nil {
		return err
	}
	return s.VerifyUsage(ctx)
}

// VerifyUsage checks as EnsureUsage does, and creates nothing.
func (s *Store) VerifyUsage(ctx context.Context) error {
	if err := s.verifyTable(ctx, s.options.Table+usageSuffix, usageColumns, s.dialect.usageTypes); err != nil {
		return err
	}
	return s.verifyView(ctx, s.hoursView())
}

// Verify checks as Ensure does, and creates nothing.
func (s *Store) Verify(ctx context.Context) error {
	if err := s.verifyEvents(ctx); err != nil {
		return err
	}
	if err := s.verifyView(ctx, s.periodsView()); err != nil {
		return err
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

// view is a view of this package: its name, the version of its text, its columns, and the statements that create it or replace an
// older version.
type view struct {
	name    string
	version int
	columns []string
	steps   []string
}

func (s *Store) periodsView() view {
	return view{s.options.Table + periodsSuffix, viewVersion, periodColumns, present(s.text.dropView, s.text.view, s.text.describeView)}
}

func (s *Store) hoursView() view {
	return view{s.options.Table + hoursSuffix, hoursVersion, hoursColumns, present(s.text.dropHours, s.text.hoursView, s.text.describeHours)}
}

// create runs the text unless the table, view or index exists. If another process creates it at the same time, that is no error.
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

// ensureView creates the view, or replaces it if it has a lower version. A view that lacks our columns is somebody else's:
// ensureView leaves it, and verifyView returns an error for it.
func (s *Store) ensureView(ctx context.Context, v view) error {
	found, err := s.columns(ctx, v.name)
	if err != nil || len(found) > 0 && len(missing(found, v.columns)) > 0 {
		return err
	}
	version, err := s.versionOfView(ctx, v)
	if err != nil || version >= v.version {
		return err
	}
	if err := s.replaceView(ctx, v.steps); err != nil {
		if version, again := s.versionOfView(ctx, v); again == nil && version >= v.version {
			return nil // somebody else was quicker
		}
		return fmt.Errorf("creating %s: %w", v.name, err)
	}
	return nil
}

// replaceView runs the steps, in one transaction if the engine needs several, so that no reader finds the view missing.
func (s *Store) replaceView(ctx context.Context, steps []string) error {
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

// versionOfView returns 0 if there is no view, and 1 if the view has no version, because the first version had none.
func (s *Store) versionOfView(ctx context.Context, v view) (int, error) {
	found, err := s.columns(ctx, v.name)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	var text string
	if err := s.db.QueryRowContext(ctx, s.text.viewVersion, v.name).Scan(&text); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("reading the version of %s: %w", v.name, err)
	}
	if match := versionText.FindStringSubmatch(text); match != nil {
		return strconv.Atoi(match[1])
	}
	return 1, nil
}

// column is a column of a table, as the engine describes it.
type column struct {
	name, kind string
	// required says that an INSERT must state the column.
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

func (s *Store) verifyEvents(ctx context.Context) error {
	return s.verifyTable(ctx, s.options.Table, eventColumns, s.dialect.types)
}

func (s *Store) verifyTable(ctx context.Context, table string, columns []string, types map[string]string) error {
	found, err := s.columns(ctx, table)
	if err != nil {
		return err
	}
	problems := missing(found, columns)
	for _, c := range found {
		want, ours := types[c.name]
		switch {
		case ours && c.kind != want:
			problems = append(problems, fmt.Sprintf("column %s is %s, it must be %s", c.name, cmp.Or(c.kind, "without a type"), want))
		case !ours && c.required:
			problems = append(problems, fmt.Sprintf("column %s is not ours: it must allow NULL or have a default", c.name))
		}
	}
	return schemaError(table, found, problems)
}

// verifyView returns a *SchemaError for missing columns, and for a view of a lower version.
func (s *Store) verifyView(ctx context.Context, v view) error {
	found, err := s.columns(ctx, v.name)
	if err != nil {
		return err
	}
	if err := schemaError(v.name, found, missing(found, v.columns)); err != nil {
		return err
	}
	version, err := s.versionOfView(ctx, v)
	if err != nil || version >= v.version {
		return err
	}
	return &SchemaError{Table: v.name, Problems: []string{fmt.Sprintf("it is of version %d, this program needs version %d: "+
		"run what `manager billing ddl` prints", version, v.version)}}
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
