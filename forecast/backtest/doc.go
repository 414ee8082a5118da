// Package backtest tries forecasters on rolling origins: at each it shows them the past alone, and scores what they say by what came.
//
// [Rolling] cuts the origins of any series, [Traces] and [M4] those of the benchmarks; [Evaluate] asks a forecaster, [Board] gathers the
// measures. The bench over a folder of traces, or over the M4 hourly set, is run by
//
//	TRACES=DIR M4=DIR make bench-forecast
//	go run ./bench/forecast --traces DIR [--peers] [--only NAME,...] [--out FILE]
//	go run ./bench/forecast --m4 DIR [--peers]
//
// which reads origins within M4's training part; its test part is read with --m4-test alone.
package backtest
