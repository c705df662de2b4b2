package apiserver

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// NewRecorder returns a recorder that writes Events as the component, and what ends it. Recording never waits for the API server.
func (c *Client) NewRecorder(component string) (recorder record.EventRecorder, stop func()) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(eventSink{c.core})
	return broadcaster.NewRecorder(c.scheme, corev1.EventSource{Component: component}), broadcaster.Shutdown
}

// eventTimeout limits a write of an Event.
const eventTimeout = 30 * time.Second

// eventSink implements record.EventSink, as k8s.io/client-go/kubernetes/typed/core/v1 does.
type eventSink struct{ core rest.Interface }

func (s eventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.do(s.core.Post().Namespace(event.Namespace).Resource("events").Body(event))
}

func (s eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.do(s.core.Put().Namespace(event.Namespace).Resource("events").Name(event.Name).Body(event))
}

func (s eventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.do(s.core.Patch(types.StrategicMergePatchType).Namespace(event.Namespace).Resource("events").Name(event.Name).Body(data))
}

func (s eventSink) do(request *rest.Request) (*corev1.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	answer := &corev1.Event{}
	err := request.Do(ctx).Into(answer)
	return answer, err
}
