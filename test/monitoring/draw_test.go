package monitoring_test

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A cell of Grafana's grid, in points.
const cellWidth, cellHeight = 34, 22

// draw draws the panels where Grafana would, each from the results of its targets.
func (d dashboard) draw(t *testing.T, file string, results map[int][]promql.Matrix) {
	t.Helper()
	rows := 0
	for _, p := range d.Panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	width, height := vg.Length(24*cellWidth), vg.Length(rows*cellHeight)
	canvas := vgsvg.New(width, height)
	page := vgdraw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Path())
	for _, p := range d.Panels {
		x, y := vg.Length(p.GridPos.X*cellWidth), height-vg.Length((p.GridPos.Y+p.GridPos.H)*cellHeight)
		at := vgdraw.Crop(page, x+4, x+vg.Length(p.GridPos.W*cellWidth)-4-width, y+4, y+vg.Length(p.GridPos.H*cellHeight)-4-height)
		if p.Type == "stat" {
			p.drawStat(at, results[p.ID])
		} else {
			p.drawSeries(t, at, results[p.ID])
		}
	}
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	if _, err := canvas.WriteTo(out); err != nil {
		t.Fatal(err)
	}
}

// drawStat writes the last value, large, as a plot without axes whose title is two lines.
func (p panel) drawStat(at vgdraw.Canvas, results []promql.Matrix) {
	points := results[0][0].Floats
	one := plot.New()
	one.HideAxes()
	one.Title.Text = p.Title
	one.Title.TextStyle.Font.Size = font.Points(8)
	one.Draw(at)
	style := one.Title.TextStyle
	style.Font.Size = font.Points(20)
	style.XAlign, style.YAlign = vgdraw.XCenter, vgdraw.YCenter
	at.FillText(style, vg.Point{X: (at.Min.X + at.Max.X) / 2, Y: (at.Min.Y+at.Max.Y)/2 - 6},
		format(points[len(points)-1].F, p.FieldConfig.Defaults.Unit))
}

func (p panel) drawSeries(t *testing.T, at vgdraw.Canvas, results []promql.Matrix) {
	t.Helper()
	one := plot.New()
	one.Title.Text = p.Title
	one.Title.TextStyle.Font.Size = font.Points(9)
	one.Y.Min = 0
	one.X.Tick.Marker = plot.ConstantTicks(nil)
	one.Y.Tick.Marker = ticks{unit: p.FieldConfig.Defaults.Unit}
	one.Y.Tick.Label.Font.Size = font.Points(7)
	one.Legend.TextStyle.Font.Size = font.Points(6)
	one.Legend.Top, one.Legend.Left = true, true
	one.Legend.ThumbnailWidth = 8
	colour := 0
	for i, matrix := range results {
		for _, series := range matrix {
			var points plotter.XYs
			for _, point := range series.Floats {
				if !math.IsNaN(point.F) && !math.IsInf(point.F, 0) {
					points = append(points, plotter.XY{X: float64(point.T-start.UnixMilli()) / 60_000, Y: point.F})
				}
			}
			if len(points) == 0 {
				continue
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				t.Fatal(err)
			}
			line.Color = plotutil.Color(colour)
			one.Add(line)
			if colour++; colour <= 6 {
				one.Legend.Add(legend(p.Targets[i].LegendFormat, series.Metric), line)
			}
		}
	}
	one.Y.Max = max(one.Y.Max, 1e-3) * 1.4 // room for the legend
	one.Draw(at)
}

var field = regexp.MustCompile(`{{(\w+)}}`)

// legend fills in a legend as Grafana does.
func legend(format string, metric labels.Labels) string {
	return field.ReplaceAllStringFunc(format, func(name string) string { return metric.Get(strings.Trim(name, "{}")) })
}

type ticks struct{ unit string }

// Ticks implements plot.Ticker.
func (k ticks) Ticks(low, high float64) []plot.Tick {
	var all []plot.Tick
	for _, tick := range (plot.DefaultTicks{}).Ticks(low, high) {
		if tick.Label != "" {
			tick.Label = format(tick.Value, k.unit)
		}
		all = append(all, tick)
	}
	return all
}

func format(value float64, unit string) string {
	number := strconv.FormatFloat(value, 'g', 3, 64)
	switch {
	case unit == "bytes":
		return fmt.Sprintf("%.0f MiB", value/(1<<20))
	case unit == "s" && value >= 86400:
		return fmt.Sprintf("%.1f d", value/86400)
	case unit == "s" && value < 1:
		return fmt.Sprintf("%.0f ms", value*1000)
	case unit == "s":
		return number + " s"
	case unit == "ops" || unit == "reqps":
		return number + "/s"
	}
	return number
}
