package billing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// viewName returns the name of the view.
func (s *Schema) viewName() string { return s.table + periodsSuffix }

// ensureView creates the view, or replaces it if it has a lower version. A view that lacks our columns is somebody
// else's: ensureView leaves it, and verifyView returns an error for it.
func (s *Schema) ensureView(ctx context.Context) error {
	found, err := s.readColumns(ctx, s.viewName())
	if err != nil || len(found) > 0 && len(missingColumns(found, periodColumns)) > 0 {
		return err
	}
	version, err := s.versionOfView(ctx)
	if err != nil || version >= viewVersion {
		return err
	}
	if err := s.replaceView(ctx); err != nil {
		if version, again := s.versionOfView(ctx); again == nil && version >= viewVersion {
			return nil // another process has replaced the view first
		}
		return fmt.Errorf("creating %s: %w", s.viewName(), err)
	}
	return nil
}

// replaceView creates the view, in one transaction if the engine needs several steps, so that no reader finds the view
// missing.
func (s *Schema) replaceView(ctx context.Context) error {
	steps := presentTexts(s.text.dropView, s.text.view, s.text.describeView)
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
func (s *Schema) versionOfView(ctx context.Context) (int, error) {
	found, err := s.readColumns(ctx, s.viewName())
	if err != nil || len(found) == 0 {
		return 0, err
	}
	var text string
	if err := s.db.QueryRowContext(ctx, s.text.viewVersion, s.viewName()).Scan(&text); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("reading the version of %s: %w", s.viewName(), err)
	}
	if match := versionText.FindStringSubmatch(text); match != nil {
		return strconv.Atoi(match[1])
	}
	return 1, nil
}

// verifyView returns a *SchemaError for missing columns, and for a view of a lower version.
func (s *Schema) verifyView(ctx context.Context) error {
	found, err := s.readColumns(ctx, s.viewName())
	if err != nil {
		return err
	}
	if err := schemaError(s.viewName(), found, missingColumns(found, periodColumns)); err != nil {
		return err
	}
	version, err := s.versionOfView(ctx)
	if err != nil || version >= viewVersion {
		return err
	}
	return &SchemaError{Table: s.viewName(), Problems: []string{fmt.Sprintf("it is of version %d, this program needs version %d: "+
		"run what `manager billing ddl` prints", version, viewVersion)}}
}
