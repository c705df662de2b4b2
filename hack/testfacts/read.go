package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/test/facts"
)

// testCase is a case of a suite, or a test of a package.
type testCase struct {
	name     string
	seconds  float64
	attempts int
}

func readRecords(file string) ([]facts.Record, error) {
	data, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading what the tests cost: %w", err)
	}
	defer func() { _ = data.Close() }()
	return decodeAll[facts.Record](data)
}

// decodeAll decodes a stream of JSON values.
func decodeAll[T any](stream io.Reader) ([]T, error) {
	var all []T
	for values := json.NewDecoder(stream); ; {
		var one T
		switch err := values.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("decoding value %d: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
}

// readCases returns the cases in the reports of a folder. A report that a killed run never wrote is left out.
func readCases(folder string) ([]testCase, error) {
	var all []testCase
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		read := readGoTest
		if strings.HasPrefix(strings.TrimSpace(string(data)), "[") {
			read = readGinkgo
		}
		cases, err := read(string(data))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		all = append(all, cases...)
	}
	return all, nil
}

// readGoTest reads the output of `go test -json`. Only top-level tests count, because their time holds that of their subtests.
func readGoTest(report string) ([]testCase, error) {
	type event struct {
		Action, Package, Test string
		Elapsed               float64
	}
	events, err := decodeAll[event](strings.NewReader(report))
	if err != nil {
		return nil, err
	}
	var all []testCase
	for _, e := range events {
		if (e.Action == "pass" || e.Action == "fail") && e.Test != "" && !strings.Contains(e.Test, "/") {
			all = append(all, testCase{name: path.Base(e.Package) + " " + e.Test, seconds: e.Elapsed, attempts: 1})
		}
	}
	return all, nil
}

// readGinkgo reads Ginkgo's --json-report. A time is that of all attempts of a case together.
func readGinkgo(report string) ([]testCase, error) {
	type spec struct {
		State, LeafNodeText, LeafNodeType string
		ContainerHierarchyTexts           []string
		RunTime                           time.Duration
		NumAttempts                       int
	}
	var suites []struct {
		SuiteDescription string
		SpecReports      []spec
	}
	if err := json.Unmarshal([]byte(report), &suites); err != nil {
		return nil, err
	}
	var all []testCase
	for _, suite := range suites {
		for _, one := range suite.SpecReports {
			if one.State == "skipped" || one.State == "pending" {
				continue
			}
			words := append([]string{suite.SuiteDescription}, one.ContainerHierarchyTexts...)
			if one.LeafNodeType != "It" {
				words = append(words, one.LeafNodeType)
			}
			all = append(all, testCase{name: strings.TrimSpace(strings.Join(append(words, one.LeafNodeText), " ")),
				seconds: one.RunTime.Seconds(), attempts: one.NumAttempts})
		}
	}
	return all, nil
}
