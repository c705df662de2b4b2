package monitoring_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/teststorage"
)

// scrape is what Prometheus has of all targets at one moment: the value of each series, by its labels.
type scrape map[string]sample

type sample struct {
	labels labels.Labels
	value  float64
}

func (s scrape) put(ls labels.Labels, value float64) { s[ls.String()] = sample{ls, value} }

// add takes in the metrics of one target with the labels that Prometheus gives it.
func (s scrape) add(t *testing.T, families map[string]*dto.MetricFamily, target map[string]string) {
	t.Helper()
	all, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		set := maps.Clone(target)
		for name, value := range one.Metric {
			set[string(name)] = string(value)
		}
		s.put(labels.FromMap(set), float64(one.Value))
	}
}

// total is the sum of all series of a name with these labels.
func (s scrape) total(name string, pairs ...string) (sum float64) {
	for _, one := range s {
		if matches(one.labels, name, pairs) {
			sum += one.value
		}
	}
	return sum
}

func matches(ls labels.Labels, name string, pairs []string) bool {
	if ls.Get(model.MetricNameLabel) != name {
		return false
	}
	for i := 0; i < len(pairs); i += 2 {
		if ls.Get(pairs[i]) != pairs[i+1] {
			return false
		}
	}
	return true
}

// scene is a scrape that is repeated, once a minute.
type scene struct {
	minutes int
	scrape  scrape
	// change, if it isn't nil, returns the value of a series in a minute of the scene. If it returns false, the series is gone.
	change func(one sample, minute int) (float64, bool)
}

// start is when all recordings begin: now, so that the time stamps among the metrics are true.
var start = time.Now().Truncate(time.Minute)

// recording is a Prometheus that has scraped scenes, one after the other.
type recording struct {
	storage *teststorage.TestStorage
	engine  *promql.Engine
	minutes int
}

// record has a Prometheus scrape the scenes; only the metrics of these names, if there are any.
func record(t *testing.T, names []string, scenes ...scene) *recording {
	t.Helper()
	r := &recording{storage: teststorage.New(t), engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
	})}
	for _, s := range scenes {
		for minute := range s.minutes {
			to := r.storage.Appender(t.Context())
			for _, one := range s.scrape {
				if len(names) > 0 && !slices.Contains(names, one.labels.Get(model.MetricNameLabel)) {
					continue
				}
				value, there := one.value, true
				if s.change != nil {
					value, there = s.change(one, minute)
				}
				if !there {
					continue
				}
				if _, err := to.Append(0, one.labels, r.at(r.minutes).UnixMilli(), value); err != nil {
					t.Fatal(err)
				}
			}
			if err := to.Commit(); err != nil {
				t.Fatal(err)
			}
			r.minutes++
		}
	}
	return r
}

func (r *recording) at(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }

// metricNames are the names of the metrics that an expression asks for.
func metricNames(t *testing.T, expression string) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	var names []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, selector.Name)
		}
		return nil
	})
	return names
}
