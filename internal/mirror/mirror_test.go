package mirror_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/mirror"
)

type table = *mirror.Table[object, string]

// x is the object of the one place of these cases, with its UID and version. Its value says both.
func x(uid, version string) object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x", UID: types.UID(uid),
		ResourceVersion: version, Annotations: map[string]string{"value": uid + "@" + version}}}
}

var place = mirror.Place{Namespace: "a", Name: "x"}

func list(t table, version string, all ...object) { t.List(mirror.Everywhere, version, all) }

// The names begin with the number of the rule, in the package's comment.
func TestRules(t *testing.T) {
	for name, tt := range map[string]struct {
		steps func(table)
		want  string // the value at the place; "" if nothing exists
	}{
		"R1 an answer to a request that began before the namespace was made anew says nothing": {func(t table) {
			list(t, "10", x("u", "5"))
			f := t.Begin(place)
			t.ForgetNamespace("a", "12")
			t.Answered(f, x("u", "11"))
		}, ""},
		"R1 neither does the answer to a creation": {func(t table) {
			list(t, "10")
			f := t.Begin(place)
			t.ForgetNamespace("a", "12")
			t.Answered(f, x("u", "11"))
		}, ""},
		"R1 what was in a namespace that is gone is gone, before the watch shows that": {func(t table) {
			list(t, "10", x("u", "5"))
			t.ForgetNamespace("a", "12")
		}, ""},
		"R1 what the watch has shown already of the namespace that was made anew stays": {func(t table) {
			list(t, "10", x("u", "5"))
			t.End(x("u", "11"))
			t.Show(x("v", "14"))
			t.ForgetNamespace("a", "12")
		}, "v@14"},
		"R2 an object that a read has not found does not come back by a watch that is behind": {func(t table) {
			list(t, "10", x("u", "5"))
			t.Absent(t.Begin(place))
			t.Show(x("u", "12"))
		}, ""},
		"R2 another object of the name counts": {func(t table) {
			list(t, "10", x("u", "5"))
			t.Absent(t.Begin(place))
			t.Show(x("v", "12"))
		}, "v@12"},
		"R3 an older event does not hide the answer to a write": {func(t table) {
			list(t, "10", x("u", "5"))
			t.Answered(t.Begin(place), x("u", "12"))
			t.Show(x("u", "11"))
		}, "u@12"},
		"R3 a late answer about an object that is gone does not hide the one that has its name": {func(t table) {
			list(t, "10", x("u", "5"))
			f := t.Begin(place)
			t.End(x("u", "12"))
			t.Show(x("v", "13"))
			t.Answered(f, x("u", "11"))
		}, "v@13"},
		"R4 a late answer does not bring back an object that the watch has shown to be gone": {func(t table) {
			list(t, "10", x("u", "5"))
			f := t.Begin(place)
			t.End(x("u", "12"))
			t.Answered(f, x("u", "11"))
		}, ""},
		"R4 an answer that is newer than what the watch has shown is of an object that exists": {func(t table) {
			list(t, "10")
			t.Answered(t.Begin(place), x("u", "11"))
		}, "u@11"},
		"R4 a list that is older than what the watch has shown brings nothing back": {func(t table) {
			list(t, "10", x("u", "5"))
			t.End(x("u", "12"))
			list(t, "8", x("u", "5"))
		}, ""},
		"R5 a list ends what it does not have": {func(t table) {
			list(t, "10", x("u", "5"))
			list(t, "12")
		}, ""},
		"R5 a list does not end what is newer than the list": {func(t table) {
			list(t, "10")
			t.Answered(t.Begin(place), x("u", "12"))
			list(t, "11")
		}, "u@12"},
		"R6 the end of an object that was there before says nothing about the one that has its name": {func(t table) {
			list(t, "10", x("u", "5"))
			t.Answered(t.Begin(place), x("v", "13"))
			t.End(x("u", "12"))
		}, "v@13"},
		"R7 a read that has found nothing says nothing about an object that was made since it began": {func(t table) {
			list(t, "10")
			f := t.Begin(place)
			t.Show(x("u", "12"))
			t.Absent(f)
		}, "u@12"},
		"R8 a deletion that was answered ends the object before the watch shows that": {func(t table) {
			list(t, "10", x("u", "5"))
			t.Deleted(t.Begin(place))
			t.Show(x("u", "5"))
		}, ""},
		"R8 an object that a finalizer keeps after the deletion exists": {func(t table) {
			list(t, "10", x("u", "5"))
			t.Deleted(t.Begin(place))
			t.Show(x("u", "12"))
		}, "u@12"},
		"R10 what a blind watch has shown no longer counts": {func(t table) {
			list(t, "10", x("u", "5"))
			t.SetBlind(mirror.Everywhere, "forbidden")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := mirror.New(func(o object) string { return o.Annotations["value"] })
			tt.steps(is)
			got := ""
			if value := is.At(place); value != nil {
				got = *value
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOpenWrites(t *testing.T) {
	for name, tt := range map[string]struct {
		steps func(table)
		want  bool
	}{
		"R9 a write without an answer is open":         {func(table) {}, true},
		"R9 a refusal of a later write doesn't end it": {func(t table) { t.Refused(t.Begin(place)) }, true},
		"R9 the answer to its repetition ends it, also where that has changed nothing": {func(t table) {
			t.Answered(t.Begin(place), x("u", "5"))
		}, false},
		"R9 a newer version than the one that guards it ends it":       {func(t table) { t.Show(x("u", "12")) }, false},
		"R9 a list that has the version that guards it doesn't end it": {func(t table) { list(t, "12", x("u", "5")) }, true},
		"R9 blindness doesn't end it, and neither does the list after it": {func(t table) {
			t.SetBlind(mirror.Everywhere, "forbidden")
			list(t, "12", x("u", "5"))
		}, true},
		"R9 the end of its object ends it":    {func(t table) { t.End(x("u", "12")) }, false},
		"R1 the end of its namespace ends it": {func(t table) { t.ForgetNamespace("a", "12") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			is := mirror.New(func(o object) string { return o.Annotations["value"] })
			list(is, "10", x("u", "5"))
			if !is.Lost(is.Begin(place)) {
				t.Fatal("it is not open")
			}
			if tt.steps(is); is.IsOpen(place) != tt.want {
				t.Errorf("open: %v, want %v", !tt.want, tt.want)
			}
		})
	}
}

func TestKnowledge(t *testing.T) {
	is := mirror.New(func(o object) string { return o.Annotations["value"] })
	for _, step := range []struct {
		name string
		take func()
		want mirror.Knowledge
	}{
		{"R10 nothing was listed", func() {}, mirror.Incomplete},
		{"R10 an object that the watch shows completes nothing", func() { is.Show(x("u", "5")) }, mirror.Incomplete},
		{"R10 neither does a read of the operator's own", func() { is.Read(mirror.Everywhere, "6", nil) }, mirror.Incomplete},
		{"R10 a list does", func() { list(is, "7") }, mirror.Complete},
		{"R10 blindness ends that", func() { is.SetBlind(mirror.Everywhere, "no room") }, mirror.Blind},
	} {
		step.take()
		if got, _ := is.Knowledge("a"); got != step.want {
			t.Errorf("%s: got %d, want %d", step.name, got, step.want)
		}
	}
	if _, reason := is.Knowledge("a"); reason != "no room" {
		t.Errorf("got reason %q", reason)
	}
}
