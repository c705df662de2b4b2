// Package googlesql_test checks the statements of the ledger for BigQuery against GoogleSQL's own parser and analyser, which knows
// names and types and runs nothing. It is a module of its own, for compiling the analyser takes minutes and 7 GB.
package googlesql_test

import (
	"strings"
	"testing"

	sql "github.com/goccy/go-googlesql"
)

// engine analyses statements, and keeps the tables and views that they create.
type engine struct {
	t       *testing.T
	types   *sql.TypeFactory
	options *sql.AnalyzerOptions
	catalog *sql.SimpleCatalog
	// places are the catalogs in which a table of the dataset is found: by its name alone, behind its dataset, behind its project.
	places []*sql.SimpleCatalog
	// schema is the dataset's INFORMATION_SCHEMA.
	schema *sql.SimpleCatalog
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(sql.Init())
	e := &engine{t: t, types: must[*sql.TypeFactory](t)(sql.NewTypeFactory())}
	language := must[*sql.LanguageOptions](t)(sql.NewLanguageOptions())
	check(language.EnableMaximumLanguageFeatures())
	check(language.SetSupportsAllStatementKinds())
	check(language.SetProductMode(sql.ProductModeProductExternal))
	check(language.DisableLanguageFeature(sql.LanguageFeatureFeatureInsertOnConflictClause)) // BigQuery has none
	e.options = must[*sql.AnalyzerOptions](t)(sql.NewAnalyzerOptions2())
	check(e.options.SetLanguage(language))
	check(e.options.SetParameterMode(sql.ParameterModeParameterPositional))

	catalogOf := func(name string) *sql.SimpleCatalog {
		return must[*sql.SimpleCatalog](t)(sql.NewSimpleCatalog(name, e.types))
	}
	e.catalog = catalogOf("root")
	check(e.catalog.AddBuiltinFunctionsAndTypes(&sql.BuiltinFunctionOptions{LanguageOptions: language}))
	project, dataset, again := catalogOf("acme-finops"), catalogOf("finops"), catalogOf("finops")
	e.schema = catalogOf("INFORMATION_SCHEMA")
	check(e.catalog.AddCatalog(project))
	check(e.catalog.AddCatalog(again))
	check(project.AddCatalog(dataset))
	check(dataset.AddCatalog(e.schema))
	e.places = []*sql.SimpleCatalog{e.catalog, dataset, again}
	return e
}

// column of a table.
type column struct {
	name string
	kind sql.Googlesql_TypeNode
}

func (e *engine) add(name string, columns []column, places ...*sql.SimpleCatalog) {
	e.t.Helper()
	table := must[*sql.SimpleTable](e.t)(sql.NewSimpleTable(name, 0))
	for _, c := range columns {
		if err := table.AddColumn2(must[*sql.SimpleColumn](e.t)(sql.NewSimpleColumn(name, c.name, c.kind, false, true)), false); err != nil {
			e.t.Fatal(err)
		}
	}
	for _, place := range places {
		if err := place.AddTable(table); err != nil {
			e.t.Fatal(err)
		}
	}
}

// analyse returns what is wrong with a statement. Each of its parameters is a STRING, as the ledger sends them.
func (e *engine) analyse(text string) (sql.ResolvedStatementNode, error) {
	e.t.Helper()
	if err := e.options.ClearPositionalQueryParameters(); err != nil {
		return nil, err
	}
	for range strings.Count(text, "?") {
		if err := e.options.AddPositionalQueryParameter(must[sql.Googlesql_TypeNode](e.t)(e.types.GetString())); err != nil {
			return nil, err
		}
	}
	out, err := sql.AnalyzeStatement(text, e.options, e.catalog, e.types)
	if err != nil {
		return nil, err
	}
	return out.ResolvedStatement()
}

// create analyses a statement, and keeps the table or view that it creates.
func (e *engine) create(name, text string) error {
	e.t.Helper()
	statement, err := e.analyse(text)
	if err != nil {
		return err
	}
	var columns []column
	switch s := statement.(type) {
	case *sql.ResolvedCreateTableStmt:
		for _, c := range must[[]*sql.ResolvedColumnDefinition](e.t)(s.ColumnDefinitionList()) {
			columns = append(columns, column{must[string](e.t)(c.Name()), must[sql.Googlesql_TypeNode](e.t)(c.Type())})
		}
	case *sql.ResolvedCreateViewStmt:
		for _, c := range must[[]*sql.ResolvedOutputColumn](e.t)(s.OutputColumnList()) {
			of := must[*sql.ResolvedColumn](e.t)(c.Column())
			columns = append(columns, column{must[string](e.t)(c.Name()), must[sql.Googlesql_TypeNode](e.t)(of.Type())})
		}
	default:
		return nil
	}
	e.add(name, columns, e.places...)
	return nil
}
