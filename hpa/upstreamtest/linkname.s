// Empty: functions without a body, which behavior_test.go takes from upstream by name, need an assembly file in the package.
