package devcluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are what an operator's metrics endpoint said at one moment.
type Metrics map[string]*dto.MetricFamily

// fetchMetrics reads the endpoint of an operator that serves it without authentication.
func fetchMetrics(ctx context.Context, url string) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return readMetrics(http.DefaultClient, req)
}

// FetchMetrics reads the endpoint of an operator in a pod, whose certificate no known CA has signed.
func FetchMetrics(ctx context.Context, url, token string) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	return readMetrics(&http.Client{Transport: insecure}, req)
}

func readMetrics(reader *http.Client, req *http.Request) (Metrics, error) {
	answer, err := reader.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading metrics: GET %s: %s", req.URL, answer.Status)
	}
	return parseMetrics(answer.Body)
}

func parseMetrics(text io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return families, nil
}

// Value returns the sum of all series of that name that have at least these labels, 0 if there is none. For a histogram or summary, name is
// NAME_count or NAME_sum.
func (m Metrics) Value(name string, labels map[string]string) float64 {
	read := singleValue
	family, ok := m[name]
	if base, isCount := strings.CutSuffix(name, "_count"); !ok && isCount {
		family, read = m[base], count
	}
	if base, isSum := strings.CutSuffix(name, "_sum"); !ok && isSum {
		family, read = m[base], sum
	}
	var total float64
	for _, metric := range family.GetMetric() {
		if has(metric, labels) {
			total += read(metric)
		}
	}
	return total
}

// Has reports whether there is a series of that name that has at least these labels.
func (m Metrics) Has(name string, labels map[string]string) bool {
	for _, metric := range m[name].GetMetric() {
		if has(metric, labels) {
			return true
		}
	}
	return false
}

func has(metric *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, pair := range metric.GetLabel() {
		if value, ok := labels[pair.GetName()]; ok && value == pair.GetValue() {
			found++
		}
	}
	return found == len(labels)
}

// singleValue reads a counter, a gauge or an untyped value: a series is one of them, and the others read 0.
func singleValue(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
}

func count(m *dto.Metric) float64 {
	return float64(m.GetHistogram().GetSampleCount() + m.GetSummary().GetSampleCount())
}

func sum(m *dto.Metric) float64 {
	return m.GetHistogram().GetSampleSum() + m.GetSummary().GetSampleSum()
}
