package fakebigquery

import (
	"database/sql"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// instant is the form of a time in SQLite, in which text sorts as time does.
const instant = "2006-01-02T15:04:05.000000Z"

// result is what a statement returned.
type result struct {
	fields   []field
	rows     [][]cell
	affected int64
}

// field of a schema.
type field struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Mode string `json:"mode"`
}

// cell is a value, always as text, or NULL.
type cell struct {
	text  string
	valid bool
}

func (c cell) json() any {
	if !c.valid {
		return nil
	}
	return c.text
}

func (s *Server) execute(text string, parameters []parameter) (result, *apiError) {
	steps, problem := translate(text)
	if problem != nil {
		return result{}, problem
	}
	args := make([]any, len(parameters))
	for i, p := range parameters {
		args[i] = p.value()
	}
	for _, step := range steps[:len(steps)-1] {
		if _, err := s.db.Exec(step); err != nil {
			return result{}, explain(err)
		}
	}
	last := steps[len(steps)-1]
	if !returnsRows.MatchString(last) {
		return s.change(last, args)
	}
	return s.query(last, args)
}

var returnsRows = regexp.MustCompile(`(?i)^\s*(SELECT|WITH)\b`)

func (s *Server) change(text string, args []any) (done result, problem *apiError) {
	r, err := s.db.Exec(text, args...)
	if err != nil {
		return done, explain(err)
	}
	if changesRows.MatchString(text) {
		done.affected, _ = r.RowsAffected()
	}
	return done, nil
}

var changesRows = regexp.MustCompile(`(?i)^\s*(INSERT|UPDATE|DELETE)\b`)

func (s *Server) query(text string, args []any) (found result, problem *apiError) {
	rows, err := s.db.Query(text, args...)
	if err != nil {
		return found, explain(err)
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		return found, explain(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return found, explain(err)
		}
		row := make([]cell, len(columns))
		for i, value := range values {
			row[i] = cellOf(value)
		}
		found.rows = append(found.rows, row)
	}
	if err := rows.Err(); err != nil {
		return found, explain(err)
	}
	for i, column := range columns {
		found.fields = append(found.fields, field{nameOf(column, i), found.typeOf(column, i), "NULLABLE"})
	}
	return found, nil
}

var plainName = regexp.MustCompile(`^\w+$`)

// nameOf returns the name of a column; one without a name gets one such as f0_, as in BigQuery.
func nameOf(column *sql.ColumnType, i int) string {
	if plainName.MatchString(column.Name()) {
		return column.Name()
	}
	return "f" + strconv.Itoa(i) + "_"
}

// typeOf returns the type of column i: as it was declared or, for an expression, as its values look.
func (r result) typeOf(column *sql.ColumnType, i int) string {
	switch declared := strings.TrimSuffix(strings.ToUpper(column.DatabaseTypeName()), "_TEXT"); declared {
	case "STRING", "TIMESTAMP", "JSON":
		return declared
	case "INT64", "INTEGER":
		return "INTEGER"
	}
	kind := ""
	for _, row := range r.rows {
		if looks := row[i].looks(); looks != "" && kind == "" {
			kind = looks
		} else if looks != "" && looks != kind {
			return "STRING"
		}
	}
	if kind == "" {
		return "STRING"
	}
	return kind
}

func (c cell) looks() string {
	if !c.valid {
		return ""
	}
	if _, err := time.Parse(instant, c.text); err == nil {
		return "TIMESTAMP"
	}
	if _, err := strconv.ParseInt(c.text, 10, 64); err == nil {
		return "INTEGER"
	}
	if _, err := strconv.ParseFloat(c.text, 64); err == nil {
		return "FLOAT"
	}
	return "STRING"
}

func cellOf(value any) cell {
	switch v := value.(type) {
	case nil:
		return cell{}
	case []byte:
		return cell{string(v), true}
	case time.Time:
		return cell{v.UTC().Format(instant), true}
	case float64:
		return cell{strconv.FormatFloat(v, 'f', -1, 64), true}
	default:
		return cell{fmt.Sprint(v), true}
	}
}

// value is the parameter as SQLite takes it.
func (p parameter) value() any {
	if p.ParameterValue.Value == nil {
		return nil
	}
	text := *p.ParameterValue.Value
	switch p.ParameterType.Type {
	case "INT64":
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	case "FLOAT64":
		n, _ := strconv.ParseFloat(text, 64)
		return n
	case "BOOL":
		return text == "true"
	case "TIMESTAMP":
		t, _ := time.Parse("2006-01-02 15:04:05.999999-07:00", text)
		return t.UTC().Format(instant)
	}
	return text
}

// explain translates an error of SQLite into one of BigQuery.
func explain(err error) *apiError {
	for _, known := range []struct{ said, reason, says string }{
		{`no such table: (?:main\.)?(\w+)`, "notFound",
			"Not found: Table " + Project + ":" + Dataset + ".$1 was not found in location " + Location},
		{`no such column: ([\w.]+)`, "invalidQuery", "Unrecognized name: $1 at [1:1]"},
		{`has no column named (\w+)`, "invalidQuery", "Column $1 is not present in table"},
		{`NOT NULL constraint failed: \w+\.(\w+)`, "invalidQuery", "Required field $1 cannot be null"},
		{`(?:table|view) (\w+) already exists`, "duplicate", "Already Exists: Table " + Project + ":" + Dataset + ".$1"},
		{`malformed JSON`, "invalidQuery", "syntax error while parsing value"},
	} {
		pattern := regexp.MustCompile(known.said)
		if match := pattern.FindString(err.Error()); match != "" {
			return &apiError{http.StatusBadRequest, known.reason, pattern.ReplaceAllString(match, known.says)}
		}
	}
	return invalidQuery(err.Error())
}

func invalidQuery(message string) *apiError {
	return &apiError{http.StatusBadRequest, "invalidQuery", message}
}
