// Package api is a model of the API server of Kubernetes, as an http.RoundTripper's other side: storage, discovery, lists, watches, writes
// with their conflicts and refusals, the CRDs' schemas by the API server's own code, and RBAC for each request. Only one goroutine may call
// a Server at a time, except for Discover. A request that the model does not know panics, so that no test passes because of it.
package api
