package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

const reasonsFile = "api/v1alpha1/reasons.go"

// reasonsPage lists the constants of type Reason, each with its comment, which has the form "where: meaning".
func reasonsPage(context.Context) (string, error) {
	p := newPage("Reasons", reasonsFile, "Every reason of a condition or an Event. One reason has one name on all objects. The message "+
		"beside it has the details, and often the next step. [Troubleshooting](../guides/troubleshooting.md) begins from the symptom.")
	file, err := parser.ParseFile(token.NewFileSet(), reasonsFile, nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(group.Doc.Text(), "Reasons "), ". ")
		title = strings.Join(strings.Fields(strings.TrimSuffix(strings.TrimSpace(title), ".")), " ")
		p.heading("Reasons "+title, "reason", "where", "means")
		for _, spec := range group.Specs {
			if err := writeReason(p, spec.(*ast.ValueSpec)); err != nil {
				return "", err
			}
		}
	}
	return p.String(), nil
}

func writeReason(p *page, constant *ast.ValueSpec) error {
	reason, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
	if err != nil {
		return err
	}
	where, means, found := strings.Cut(strings.Join(strings.Fields(constant.Doc.Text()), " "), ": ")
	if !found {
		return fmt.Errorf("the comment of %s does not have the form \"where: meaning\"", constant.Names[0].Name)
	}
	p.row(code(reason), where, sentence(strings.ToUpper(means[:1])+means[1:]))
	return nil
}
