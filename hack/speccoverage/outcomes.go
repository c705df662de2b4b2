package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/warren-tenancy/warren/hack/cases"
)

// outcomes holds the results of the tests whose names have a case's number, by that number. Skipped and pending tests are ignored.
type outcomes map[string]outcome

type outcome struct{ passed, failed bool }

// isMet is true for a case with a test that passed, and none that failed.
func (o outcomes) isMet(number string) bool { return o[number].passed && !o[number].failed }

func (o outcomes) add(name string, passed bool) {
	for _, n := range cases.Number.FindAllString(name, -1) {
		before := o[n]
		o[n] = outcome{passed: before.passed || passed, failed: before.failed || !passed}
	}
}

// readReports returns the outcomes in all these reports together.
func readReports(files []string) (outcomes, error) {
	o := outcomes{}
	for _, file := range files {
		if err := o.readReport(file); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o outcomes) readReport(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading a report: %w", err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		err = o.readGinkgo(data)
	} else {
		err = o.readGoTest(data)
	}
	if err != nil {
		return fmt.Errorf("%s is no report of go test -json or ginkgo --json-report: %w", file, err)
	}
	return nil
}

func (o outcomes) readGoTest(data []byte) error {
	events := json.NewDecoder(bytes.NewReader(data))
	for {
		var event struct{ Action, Test string }
		switch err := events.Decode(&event); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if event.Action == "pass" || event.Action == "fail" {
			// go test writes spaces in names of subtests as underscores.
			o.add(strings.ReplaceAll(event.Test, "_", " "), event.Action == "pass")
		}
	}
}

func (o outcomes) readGinkgo(data []byte) error {
	var suites []struct {
		SpecReports []struct {
			State                   string
			ContainerHierarchyTexts []string
			LeafNodeText            string
		}
	}
	if err := json.Unmarshal(data, &suites); err != nil {
		return err
	}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			switch spec.State {
			case "passed":
				o.add(name, true)
			case "failed", "panicked", "timedout", "aborted", "interrupted":
				o.add(name, false)
			}
		}
	}
	return nil
}
