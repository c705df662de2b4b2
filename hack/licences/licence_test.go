package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIdentify(t *testing.T) {
	const bsd = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided that"
	for name, c := range map[string]struct {
		text    string
		want    []string
		allowed bool
	}{
		"Apache":      {"   Apache License\n   Version 2.0, January 2004\n", []string{"Apache-2.0"}, true},
		"MIT":         {"Permission is hereby granted, free of charge, to any\nperson obtaining a copy", []string{"MIT"}, true},
		"BSD, two":    {bsd, []string{"BSD-2-Clause"}, true},
		"BSD, three":  {bsd + " may be used\nto endorse or promote products", []string{"BSD-3-Clause"}, true},
		"MPL":         {"Mozilla Public License, version 2.0 … GNU General Public License", []string{"MPL-2.0"}, true},
		"SQLite":      {"All of the code and documentation in SQLite has been dedicated to the public\ndomain by the authors.", []string{"blessing"}, true},
		"GPL":         {"  GNU AFFERO GENERAL PUBLIC LICENSE\n Version 3", []string{"GPL"}, false},
		"two at once": {bsd + " Commons Clause", []string{"BSD-2-Clause", "Commons-Clause"}, false},
		"unknown":     {"All rights reserved.", []string{"unknown"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := identifyLicences(c.text)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("licences (-want +got):\n%s", diff)
			}
			if err := judgeModule(got); (err == nil) != c.allowed {
				t.Errorf("judge: %v, want allowed %v", err, c.allowed)
			}
		})
	}
	if judgeModule(nil) == nil {
		t.Error("a module without a licence file is allowed")
	}
}
