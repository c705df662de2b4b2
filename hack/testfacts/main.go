// Testfacts measures what a run of the tests costs, and prints it.
//
//	testfacts job NAME COMMAND [ARG...]   runs a command, and records its CPU time with that of all its children
//	testfacts print FOLDER                prints tables of the records and reports in a folder
//
// Records come from the environment variable WARREN_FACTS (package test/facts); reports are the output of `go test -json` (unit.json) and
// of Ginkgo's --json-report (suites.json).
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/warren-tenancy/warren/test/facts"
)

func main() {
	switch args := os.Args[1:]; {
	case len(args) > 2 && args[0] == "job":
		os.Exit(runJob(args[1], args[2:]))
	case len(args) == 2 && args[0] == "print":
		if err := printFolder(args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: testfacts job NAME COMMAND [ARG...] | testfacts print FOLDER")
		os.Exit(2)
	}
}

// runJob runs a command, records what it cost, and returns its exit code.
func runJob(name string, command []string) int {
	begun := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	facts.Write(facts.Record{Kind: facts.Job, Name: name, CPU: used.Seconds(), Wall: time.Since(begun).Seconds()})
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1) // -1 if a signal ended it
	}
	return 0
}

func printFolder(folder string) error {
	records, err := readRecords(filepath.Join(folder, "facts.jsonl"))
	if err != nil {
		return err
	}
	cases, err := readCases(folder)
	if err != nil {
		return err
	}
	printCosts(os.Stdout, records)
	printPlanes(os.Stdout, records)
	printCases(os.Stdout, cases)
	return nil
}
