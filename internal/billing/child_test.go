package billing_test

const childEnv = "X"

func child() int { return 0 }
