package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/warren-tenancy/warren/test/facts"
)

// slowest is how many cases the table of the slowest has, and costliest how many control planes that of the costliest.
const slowest, costliest = 15, 15

// sum adds up records of one kind and name.
type sum struct {
	count     int
	cpu, wall float64
	longest   float64 // of the records' Wall
}

func (s *sum) add(r facts.Record) {
	s.count++
	s.cpu += r.CPU
	s.wall += r.Wall
	s.longest = max(s.longest, r.Wall)
}

// addUp returns the sums of the records of one kind by name, and of all of them.
func addUp(records []facts.Record, kind facts.Kind) (byName map[string]*sum, all sum) {
	byName = map[string]*sum{}
	for _, r := range records {
		if r.Kind != kind {
			continue
		}
		if byName[r.Name] == nil {
			byName[r.Name] = &sum{}
		}
		byName[r.Name].add(r)
		all.add(r)
	}
	return byName, all
}

// printCosts prints what suites, jobs and control planes cost. A suite's processes run side by side, so its wall time is that of the
// longest.
func printCosts(out io.Writer, records []facts.Record) {
	suites, inSuites := addUp(records, facts.Suite)
	jobs, inJobs := addUp(records, facts.Job)
	planes, allPlanes := addUp(records, facts.Plane)
	_, worlds := addUp(records, facts.World)
	_, lives := addUp(records, facts.Life)

	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "suite\tCPU s\twall s\tprocesses\t\n")
	for _, name := range byCPU(suites) {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%d\t\n", name, suites[name].cpu, suites[name].longest, suites[name].count)
	}
	fmt.Fprint(w, "\t\t\t\t\njob\tCPU s\twall s\t\t\n")
	for _, name := range byCPU(jobs) {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t\t\n", name, jobs[name].cpu, jobs[name].longest)
	}
	fmt.Fprintf(w, "all jobs\t%.0f\t\t\t\n", inJobs.cpu)
	fmt.Fprint(w, "\t\t\t\t\ncontrol planes of\tCPU s\twall s\tstarts\t\n")
	for _, name := range byCPU(planes) {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%d\t\n", name, planes[name].cpu, planes[name].wall, planes[name].count)
	}
	_ = w.Flush()
	fmt.Fprintf(out, "\n%d control planes started: %.0f CPU-seconds, %.0f s each until ready. With manifests and policies in force, %d "+
		"of them: %.0f CPU-seconds, %.0f s each.\n", allPlanes.count, allPlanes.cpu, allPlanes.mean(), worlds.count, worlds.cpu, worlds.mean())
	fmt.Fprintf(out, "From start to end, etcd, API servers and controller managers used %.0f CPU-seconds in %.0f s.\n", lives.cpu, lives.wall)
	fmt.Fprintf(out, "All jobs used %.0f CPU-seconds; suites used %.0f of them, and compilers, linkers and unit tests the rest.\n",
		inJobs.cpu, inSuites.cpu)
}

// printPlanes prints the control planes that used most, with the case that was running when each ended.
func printPlanes(out io.Writer, records []facts.Record) {
	lives := slices.DeleteFunc(slices.Clone(records), func(r facts.Record) bool { return r.Kind != facts.Life })
	slices.SortFunc(lives, func(a, b facts.Record) int { return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(a.Case, b.Case)) })
	fmt.Fprintln(out, "\nthe costliest control planes, and what ran when they ended")
	for _, one := range lives[:min(costliest, len(lives))] {
		fmt.Fprintf(out, "%6.0f CPU s  %4.0f s  %s %s\n", one.CPU, one.Wall, strings.TrimSuffix(one.Name, ".test"), one.Case)
	}
}

func (s sum) mean() float64 { return s.wall / float64(max(s.count, 1)) }

func byCPU(sums map[string]*sum) []string {
	return slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b].cpu, sums[a].cpu), cmp.Compare(a, b))
	})
}

// printCases prints the slowest cases, and those that were tried more than once.
func printCases(out io.Writer, cases []testCase) {
	slices.SortFunc(cases, func(a, b testCase) int { return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name)) })
	fmt.Fprintf(out, "\nthe slowest of %d cases and tests\n", len(cases))
	for _, one := range cases[:min(slowest, len(cases))] {
		fmt.Fprintf(out, "%6.0f s  %s\n", one.seconds, one.name)
	}
	repeated := 0
	for _, one := range cases {
		if one.attempts > 1 {
			repeated++
			fmt.Fprintf(out, "tried %d times: %s\n", one.attempts, one.name)
		}
	}
	if repeated == 0 {
		fmt.Fprintln(out, "No test was repeated.")
	}
}
