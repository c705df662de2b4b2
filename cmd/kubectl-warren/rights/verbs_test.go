package rights

import "testing"

func TestKnownVerbs(t *testing.T) {
	for verb, want := range map[string]bool{
		"get": true, "*": true, "sign": true, "impersonate:user-info": true, "impersonate-on:user-info:list": true, "fly": false, "GET": false,
	} {
		t.Run("ACC-E11 who-can and why warn of a verb that the API server doesn't have: "+verb, func(t *testing.T) {
			if got := isKnown(verb); got != want {
				t.Errorf("got %t", got)
			}
		})
	}
}
