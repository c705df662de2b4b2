package monitoring_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/warren-tenancy/warren/test/devcluster"
)

var draw = flag.Bool("draw", false, "draw the dashboards into docs/runbooks")

// dashboard is what a test needs of Grafana's format.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []target
}

type target struct{ RefID, Expr, LegendFormat string }

// dashboards are those of the ConfigMaps of config/prometheus, which Grafana's sidecar finds by their label.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	manifests, err := devcluster.Render("config/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]dashboard{}
	for _, u := range manifests {
		if u.GetKind() != "ConfigMap" || u.GetLabels()["grafana_dashboard"] != "1" {
			continue
		}
		for file, text := range u.Object["data"].(map[string]any) {
			var d dashboard
			if err := json.Unmarshal([]byte(text.(string)), &d); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all[strings.TrimSuffix(file, ".json")] = d
		}
	}
	return all
}

// frameFor is how many minutes a frame of the story lasts in the drawings.
const frameFor = 10

func (s story) checkDashboards(t *testing.T) {
	all := dashboards(t)
	if len(all) != 3 {
		t.Errorf("there are %d dashboards, want operator, tenants and sudo", len(all))
	}
	var scenes []scene
	for _, frame := range s.frames() {
		scenes = append(scenes, scene{minutes: frameFor, scrape: frame})
	}
	prometheus := record(t, nil, scenes...)
	for name, d := range all {
		t.Run(name, func(t *testing.T) {
			d.checkShape(t)
			results := map[int][]promql.Matrix{}
			for _, p := range d.Panels {
				for _, one := range p.Targets {
					data := prometheus.query(t, one)
					if len(data) == 0 {
						t.Errorf("panel %q: %s has no data", p.Title, one.Expr)
					}
					results[p.ID] = append(results[p.ID], data)
				}
			}
			if *draw && !t.Failed() {
				d.draw(t, filepath.Join("..", "..", "docs", "runbooks", name+".svg"), results)
			}
		})
	}
}

// checkShape checks for what Grafana can't show: panels with one ID, or on top of each other, and panels without the chosen data source.
func (d dashboard) checkShape(t *testing.T) {
	t.Helper()
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 {
		t.Errorf("uid %q, title %q, schemaVersion %d: all are needed for an import", d.UID, d.Title, d.SchemaVersion)
	}
	if list := d.Templating.List; len(list) != 1 || list[0].Name != "datasource" || list[0].Type != "datasource" ||
		list[0].Query != "prometheus" {
		t.Errorf("variables are %v, want the data source alone", list)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Description == "" || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %d %q: an ID of its own, a title, a description and the chosen data source are needed", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies on %q, or beside the page", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
}

// query returns the series of a target over the whole recording, as Grafana asks for them.
func (r *recording) query(t *testing.T, one target) promql.Matrix {
	t.Helper()
	expression := strings.ReplaceAll(one.Expr, "$__rate_interval", "5m")
	query, err := r.engine.NewRangeQuery(t.Context(), r.storage, nil, expression, r.at(0), r.at(r.minutes-1), time.Minute)
	if err != nil {
		t.Fatalf("%s: %v", one.Expr, err)
	}
	defer query.Close()
	matrix, err := query.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("%s: %v", one.Expr, err)
	}
	data := make(promql.Matrix, len(matrix))
	for i, series := range matrix { // Close reuses the points
		data[i] = promql.Series{Metric: series.Metric, Floats: append([]promql.FPoint(nil), series.Floats...)}
	}
	return data
}

// TestServiceIsTheJob checks the label job, which Prometheus takes from the name of the Service.
func TestServiceIsTheJob(t *testing.T) {
	text, err := os.ReadFile("../../config/manager/metrics_service.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n  name: "+operatorJob+"\n") {
		t.Errorf("the Service of the metrics is not %s, by which alerts and dashboards select", operatorJob)
	}
}
