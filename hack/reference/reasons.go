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

const (
	conditionsFile = "api/v1alpha1/conditions.go"
	reasonsFile    = "api/v1alpha1/reasons.go"
	sudoFile       = "api/v1alpha1/sudorequest_reasons.go"
)

// reasonsPage lists the constants of type ConditionType and of type Reason, each with its comment.
func reasonsPage(context.Context) (string, error) {
	p := newPage("Conditions and reasons", conditionsFile+", "+reasonsFile+" and "+sudoFile, "Every condition, and every reason "+
		"of a condition or an Event. One reason has one name on all objects. The message beside it has the details, and often the next step. "+
		"[Troubleshooting](../guides/troubleshooting.md) begins from the symptom.")
	p.heading("Conditions", "condition", "of", "means", "condition Ready is then")
	if err := eachConstant(conditionsFile, func(string) {}, p.writeCondition); err != nil {
		return "", err
	}
	beginGroup := func(title string) { p.heading("Reasons "+title, "reason", "where", "means") }
	for _, file := range []string{reasonsFile, sudoFile} {
		if err := eachConstant(file, beginGroup, p.writeReason); err != nil {
			return "", err
		}
	}
	return p.String(), nil
}

// eachConstant calls group with what the comment of each group of constants says after its first word, and then write with each constant.
func eachConstant(path string, group func(title string), write func(*ast.ValueSpec) error) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, declaration := range file.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST || !constants.Lparen.IsValid() {
			continue
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(constants.Doc.Text(), "Reasons "), ". ")
		group(strings.Join(strings.Fields(strings.TrimSuffix(strings.TrimSpace(title), ".")), " "))
		for _, spec := range constants.Specs {
			if err := write(spec.(*ast.ValueSpec)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeCondition writes the row of a condition, whose comment has the form "kinds: meaning. Ready: effect".
func (p *page) writeCondition(constant *ast.ValueSpec) error {
	condition, where, means, err := splitConstant(constant)
	if err != nil {
		return err
	}
	means, ready, found := strings.Cut(means, ". Ready: ")
	if !found {
		return fmt.Errorf("the comment of %s does not end with \"Ready: effect\"", constant.Names[0].Name)
	}
	p.row(code(condition), where, sentence(means), ready)
	return nil
}

func (p *page) writeReason(constant *ast.ValueSpec) error {
	reason, where, means, err := splitConstant(constant)
	if err == nil {
		p.row(code(reason), where, sentence(means))
	}
	return err
}

// splitConstant returns the value of a constant, and the two parts of its comment, which has the form "where: meaning".
func splitConstant(constant *ast.ValueSpec) (value, where, means string, err error) {
	value, err = strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
	if err != nil {
		return "", "", "", err
	}
	where, means, found := strings.Cut(strings.Join(strings.Fields(constant.Doc.Text()), " "), ": ")
	if !found {
		return "", "", "", fmt.Errorf("the comment of %s does not have the form \"where: meaning\"", constant.Names[0].Name)
	}
	return value, where, strings.ToUpper(means[:1]) + means[1:], nil
}
