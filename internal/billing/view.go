package billing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// view is a view of this package: its name, the version of its text, its columns, and the statements that create it or replace an
// older version.
type view struct {
	name    string
	version int
	columns []string
	steps   []string
}

func (s *Schema) periodsView() view {
	return view{s.table + periodsSuffix, viewVersion, periodColumns, present(s.text.dropView, s.text.view, s.text.describeView)}
}

// ensureView creates the view, or replaces it if it has a lower version. A view that lacks our columns is somebody else's:
// ensureView leaves it, and verifyView returns an error for it.
func (s *Schema) ensureView(ctx context.Context, v view) error {
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
func (s *Schema) replaceView(ctx context.Context, steps []string) error {
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
func (s *Schema) versionOfView(ctx context.Context, v view) (int, error) {
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

// verifyView returns a *SchemaError for missing columns, and for a view of a lower version.
func (s *Schema) verifyView(ctx context.Context, v view) error {
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
