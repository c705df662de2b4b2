package fakebigquery

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// job is a statement that was sent.
type job struct {
	id            string
	configuration json.RawMessage
	started       time.Time
	// polled means that the job is done: at once or, with Slow, when a client has asked for it.
	polled bool

	failure *apiError
	result
}

// configuration of a job, as far as it matters here.
type configuration struct {
	JobTimeoutMs string
	DryRun       bool
	Query        struct {
		Query              string
		UseLegacySQL       *bool `json:"useLegacySql"`
		MaximumBytesBilled string
		QueryParameters    []parameter
		DefaultDataset     struct{ ProjectID, DatasetID string }
	}
}

type parameter struct {
	ParameterType  struct{ Type string }
	ParameterValue struct{ Value *string }
}

func (s *Server) insertJob(r *http.Request) (any, *apiError) {
	var body struct {
		JobReference  struct{ JobID, Location string }
		Configuration json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, &apiError{http.StatusBadRequest, "parseError", "Parse Error"}
	}
	var c configuration
	if err := json.Unmarshal(body.Configuration, &c); err != nil {
		return nil, &apiError{http.StatusBadRequest, "parseError", "Parse Error"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := body.JobReference.JobID
	switch {
	case s.jobs[id] != nil:
		return nil, &apiError{http.StatusConflict, "duplicate", "Already Exists: Job " + Project + ":" + Location + "." + id}
	case !strings.EqualFold(body.JobReference.Location, Location):
		return nil, &apiError{http.StatusNotFound, "notFound", "Not found: Dataset " + Project + ":" + Dataset + " was not found in location " +
			body.JobReference.Location}
	}
	if c.DryRun {
		return tryJob(body.Configuration, c)
	}
	j := &job{id: id, configuration: body.Configuration, started: time.Now(), polled: !s.Slow}
	if j.failure = s.nextFailure(); j.failure == nil {
		j.result, j.failure = s.carryOut(c)
	}
	s.jobs[id] = j
	return j.resource(), nil
}

// tryJob answers a dry run: it says what kind of statement it is, runs nothing, and makes no job.
func tryJob(raw json.RawMessage, c configuration) (any, *apiError) {
	if _, problem := translate(c.Query.Query); problem != nil {
		return nil, problem
	}
	j := &job{configuration: raw, started: time.Now(), polled: true}
	resource := j.resource()
	statistics := resource["statistics"].(map[string]any)
	statistics["query"].(map[string]any)["statementType"] = kindOf(c.Query.Query)
	return resource, nil
}

var create = regexp.MustCompile(`(?i)^(CREATE|DROP|ALTER)\s+(?:OR REPLACE\s+)?(\w+)`)

// kindOf returns BigQuery's statementType.
func kindOf(text string) string {
	text = strings.TrimSpace(text)
	if strings.Contains(strings.TrimSuffix(text, ";"), ";") {
		return "SCRIPT"
	}
	if words := create.FindStringSubmatch(text); words != nil {
		return strings.ToUpper(words[1] + "_" + words[2])
	}
	first := strings.ToUpper(strings.Fields(text + " ?")[0])
	if first == "WITH" {
		return "SELECT"
	}
	return first
}

// carryOut runs what the configuration says, if it may be run.
func (s *Server) carryOut(c configuration) (result, *apiError) {
	most, err := strconv.ParseInt(c.Query.MaximumBytesBilled, 10, 64)
	switch dataset := c.Query.DefaultDataset; {
	case c.Query.UseLegacySQL == nil || *c.Query.UseLegacySQL:
		return result{}, invalidQuery("legacy SQL is not what this server speaks")
	case dataset.ProjectID != Project || dataset.DatasetID != Dataset:
		return result{}, &apiError{http.StatusNotFound, "notFound", "Not found: Dataset " + dataset.ProjectID + ":" + dataset.DatasetID}
	case err == nil && most < s.BytesRead:
		return result{}, &apiError{http.StatusBadRequest, "bytesBilledLimitExceeded",
			"Query exceeded limit for bytes billed: " + strconv.FormatInt(most, 10) +
				". " + strconv.FormatInt(s.BytesRead, 10) + " or higher required."}
	}
	for _, p := range c.Query.QueryParameters {
		if v := p.ParameterValue.Value; s.poison != "" && v != nil && strings.Contains(*v, s.poison) {
			return result{}, invalidQuery("Bad int64 value: " + s.poison)
		}
	}
	return s.execute(c.Query.Query, c.Query.QueryParameters)
}

func (s *Server) getJob(r *http.Request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, problem := s.find(r)
	if problem != nil {
		return nil, problem
	}
	j.polled = true
	return j.resource(), nil
}

// find requires that the request names the location, too: BigQuery does so for jobs outside the US and the EU.
func (s *Server) find(r *http.Request) (*job, *apiError) {
	id := r.PathValue("job")
	j := s.jobs[id]
	if j == nil || !strings.EqualFold(r.URL.Query().Get("location"), Location) {
		return nil, &apiError{http.StatusNotFound, "notFound", "Not found: Job " + Project + ":" + id}
	}
	return j, nil
}

// resource is the job as the API shows it.
func (j *job) resource() map[string]any {
	status := map[string]any{"state": "RUNNING"}
	statistics := map[string]any{"creationTime": millis(j.started), "startTime": millis(j.started)}
	if j.polled {
		status["state"] = "DONE"
		statistics["endTime"] = millis(j.started)
		statistics["query"] = map[string]any{"numDmlAffectedRows": strconv.FormatInt(j.affected, 10),
			"totalBytesProcessed": "0", "cacheHit": false}
		if j.failure != nil {
			problem := map[string]any{"reason": j.failure.reason, "message": j.failure.message}
			status["errorResult"], status["errors"] = problem, []any{problem}
		}
	}
	return map[string]any{"kind": "bigquery#job", "id": Project + ":" + Location + "." + j.id, "configuration": j.configuration,
		"jobReference": map[string]any{"projectId": Project, "jobId": j.id, "location": Location}, "status": status, "statistics": statistics}
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func (s *Server) getResults(r *http.Request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, problem := s.find(r)
	if problem == nil {
		problem = j.failure
	}
	if problem != nil {
		return nil, problem
	}
	answer := map[string]any{"kind": "bigquery#getQueryResultsResponse", "jobComplete": j.polled, "totalRows": strconv.Itoa(len(j.rows)),
		"jobReference": map[string]any{"projectId": Project, "jobId": j.id, "location": Location}}
	if !j.polled {
		return answer, nil
	}
	answer["schema"] = map[string]any{"fields": j.fields}
	most := s.PageRows
	if text := r.URL.Query().Get("maxResults"); text != "" {
		n, _ := strconv.Atoi(text)
		most = min(n, most)
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("pageToken"))
	until := min(from+most, len(j.rows))
	if until < len(j.rows) {
		answer["pageToken"] = strconv.Itoa(until)
	}
	answer["rows"] = j.page(from, until, r.URL.Query().Get("formatOptions.useInt64Timestamp") == "true")
	return answer, nil
}

// page is a part of the rows, in the API's form.
func (r result) page(from, until int, wholeMicroseconds bool) []any {
	page := []any{}
	for _, row := range r.rows[from:until] {
		cells := make([]any, len(row))
		for i, value := range row {
			if t, err := time.Parse(instant, value.text); value.valid && r.fields[i].Type == "TIMESTAMP" && err == nil {
				value.text = strconv.FormatInt(t.UnixMicro(), 10)
				if !wholeMicroseconds {
					value.text = strconv.FormatFloat(float64(t.UnixMicro())/1e6, 'E', -1, 64)
				}
			}
			cells[i] = map[string]any{"v": value.json()}
		}
		page = append(page, map[string]any{"f": cells})
	}
	return page
}
