package main

import (
	"slices"
	"testing"
)

func TestPartOfTheStory(t *testing.T) {
	story := []scene{{name: "a"}, {name: "b"}, {name: "c"}}
	for choice, want := range map[[2]string][]string{
		{"", ""}: {"a", "b", "c"}, {"", "b"}: {"a", "b"}, {"b", ""}: {"c"}, {"a", "b"}: {"b"}, {"c", "a"}: nil,
	} {
		scenes, err := selectScenes(story, choice[0], choice[1])
		var got []string
		for _, s := range scenes {
			got = append(got, s.name)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("after %q until %q: got %v, %v", choice[0], choice[1], got, err)
		}
	}
	if _, err := selectScenes(story, "z", ""); err == nil {
		t.Error("a scene that isn't in the story was accepted")
	}
}
