package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// metric describes a metric as the Go sources define it.
type metric struct {
	name, kind, help string
	labels           []string
}

var metricName = regexp.MustCompile(`^(warren|watchset)_[a-z_]+$`)

// metricsPage lists the metrics that the product's sources define.
func metricsPage(context.Context) (string, error) {
	metrics, err := findMetrics("controllers", "internal", "webhooks", "pkg")
	if err != nil {
		return "", err
	}
	p := newPage("Metrics", "the Go sources", "Each program also has the metrics of controller-runtime and of Go. No label holds the name "+
		"of a namespace, a user or a user's object, except `distribution`, the name of a ResourceDistribution. Labels `policy`, `crd` and "+
		"`configuration` name objects of Warren itself.")
	sections := []struct{ title, introduction, prefix string }{
		{"The operator", "", "warren_"}, // first, because the last section whose prefix matches gets the metric
		{"The billing exporter", "On the exporter's own port. [Alerts](../../config/prometheus/billing_alerts.yaml) use them.",
			"warren_billing_"},
		{"Informers", "Of [`pkg/watchset`](../guides/informers.md), in the operator and in every program that imports it.", "watchset_"},
	}
	texts := map[string]*page{}
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		title := ""
		for _, section := range sections {
			if strings.HasPrefix(name, section.prefix) {
				title = section.title
			}
		}
		if texts[title] == nil {
			texts[title] = &page{}
		}
		m := metrics[name]
		texts[title].row(code(name), m.kind, code(strings.Join(m.labels, ", ")), sentence(m.help))
	}
	for _, section := range sections {
		p.heading(section.title)
		if section.introduction != "" {
			p.line("%s\n", section.introduction)
		}
		p.table("metric", "type", "labels", "means")
		p.WriteString(texts[section.title].String())
	}
	return p.String(), nil
}

// findMetrics returns by name the metrics that the Go files below the folders define. If a string has the form of a metric's name, but
// no definition that this program understands has that name, the result is an error: no metric may be missing from the page.
func findMetrics(folders ...string) (map[string]metric, error) {
	metrics := map[string]metric{}
	var named []string
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if m, ok := readMetric(n); ok {
						metrics[m.name] = m
					}
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && metricName.MatchString(text) {
						named = append(named, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, name := range named {
		if _, ok := metrics[name]; !ok {
			return nil, fmt.Errorf("metric %s is not defined by a call with its name, its help and its labels as literals", name)
		}
	}
	return metrics, nil
}

// readMetric reads the name, help and labels of a call such as prometheus.NewCounterVec or prometheus.NewDesc, or of a function that
// takes the same literals.
func readMetric(call *ast.CallExpr) (metric, bool) {
	var texts []string
	for _, argument := range call.Args {
		ast.Inspect(argument, func(n ast.Node) bool {
			expression, _ := n.(ast.Expr)
			text, ok := readLiteral(expression)
			if ok {
				texts = append(texts, text)
			}
			return !ok
		})
	}
	if len(texts) < 2 || !metricName.MatchString(texts[0]) || !strings.Contains(texts[1], " ") {
		return metric{}, false
	}
	kind := "gauge"
	switch name := strings.ToLower(functionName(call)); {
	case strings.Contains(name, "histogram"):
		kind = "histogram"
	case strings.Contains(name, "counter"):
		kind = "counter"
	}
	return metric{name: texts[0], kind: kind, help: texts[1], labels: texts[2:]}, true
}

// readLiteral returns the text of a string literal, or of several that + joins.
func readLiteral(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, isText := readLiteral(e.X)
		right, areTexts := readLiteral(e.Y)
		return left + right, isText && areTexts && e.Op == token.ADD
	}
	return "", false
}

func functionName(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.SelectorExpr:
		return function.Sel.Name
	case *ast.Ident:
		return function.Name
	}
	return ""
}
