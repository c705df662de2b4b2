// Speccoverage counts the numbered cases of the specification for which a test passed and none failed. Such a test has the case's number in
// its name. The program lists the other cases.
//
//	go run ./hack/speccoverage [-spec DIR] [-all] [-enforce] [REPORT...]
//
// With -enforce it prints only the cases that `make test` should show and did not, and fails if there are any. Not demanded are the cases
// whose rows name `make test-long`, and those that README.md of the specification lists as shown by another target.
//
// Reports are the output of `go test -json` and of Ginkgo's --json-report; without any, those of .reports and .reports/long.
// Reports in a folder called long are of `make test-long`: only they count for a case whose row names that target.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shown is how many characters of a list of case numbers are printed without -all.
const shown = 90

func main() {
	spec := flag.String("spec", "docs/behaviour", "folder of the specification")
	all := flag.Bool("all", false, "list every missing number")
	enforced := flag.Bool("enforce", false, "fail if a case that make test should show was not shown")
	flag.Parse()
	var err error
	if *enforced {
		err = enforceCases(*spec, flag.Args())
	} else {
		err = run(*spec, flag.Args(), *all, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(spec string, files []string, all bool, out io.Writer) error {
	if len(files) == 0 {
		files, _ = filepath.Glob(".reports/*.json")
		long, _ := filepath.Glob(".reports/long/*.json")
		files = append(files, long...)
	}
	if len(files) == 0 {
		return fmt.Errorf("no report in .reports: run make test first")
	}
	tests, err := readReports(files)
	if err != nil {
		return err
	}
	long, err := readReports(slices.DeleteFunc(files, func(file string) bool { return filepath.Base(filepath.Dir(file)) != "long" }))
	if err != nil {
		return err
	}
	pages, err := readPages(spec)
	if err != nil {
		return err
	}
	printReport(out, pages, tests, long, all)
	return nil
}

// enforceCases returns an error that names the cases which `make test` should show and the reports don't.
func enforceCases(spec string, files []string) error {
	tests, err := readReports(files)
	if err != nil {
		return err
	}
	pages, err := readPages(spec)
	if err != nil {
		return err
	}
	excused, err := readElsewhere(filepath.Join(spec, "README.md"))
	if err != nil {
		return err
	}
	var missing, idle []string
	for _, p := range pages {
		for _, number := range p.cases {
			switch {
			case excused.Has(number) && tests.isMet(number):
				idle = append(idle, number)
			case !excused.Has(number) && !slices.Contains(p.long, number) && !tests.isMet(number):
				missing = append(missing, number)
			}
		}
	}
	if len(missing) > 0 {
		err = fmt.Errorf("no test with the number of a case passed: %s", listCases(missing, true))
	}
	if len(idle) > 0 {
		err = errors.Join(err, fmt.Errorf("README.md of %s excuses cases that passed: %s", spec, listCases(idle, true)))
	}
	return err
}

func printReport(out io.Writer, pages []page, tests, long outcomes, all bool) {
	met, total := 0, 0
	known := map[string]bool{}
	for _, p := range pages {
		var missing []string
		for _, number := range p.cases {
			known[number] = true
			if !tests.isMet(number) || slices.Contains(p.long, number) && !long.isMet(number) {
				missing = append(missing, number)
			}
		}
		total += len(p.cases)
		met += len(p.cases) - len(missing)
		fmt.Fprintf(out, "%-14s %3d of %3d passed", p.name, len(p.cases)-len(missing), len(p.cases))
		if len(missing) > 0 {
			fmt.Fprintf(out, "; without: %s", listCases(missing, all))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "in all %d of %d\n", met, total)

	var failed, strangers []string
	for _, number := range slices.Sorted(maps.Keys(tests)) {
		switch {
		case !known[number]:
			strangers = append(strangers, number)
		case tests[number].failed:
			failed = append(failed, number)
		}
	}
	if len(failed) > 0 {
		fmt.Fprintf(out, "failed: %s\n", listCases(failed, true))
	}
	if len(strangers) > 0 {
		fmt.Fprintf(out, "in names of tests, but no case: %s\n", listCases(strangers, true))
	}
}

func listCases(numbers []string, all bool) string {
	line := strings.Join(numbers, " ")
	if !all && len(line) > shown {
		return line[:shown] + "…"
	}
	return line
}
