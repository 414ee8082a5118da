// Package model holds the forecasting methods, one file each, and what they share: the history in its transformed form, the sketch
// of past misses, and the blend that weighs the methods against each other by how they did before.
//
// A method ("member") answers one question: seen from an origin, what will the value be h steps later? It answers it from the history
// alone, so that it can be asked about any past origin that the history still covers. That is how members are judged: when a value
// arrives, every member is asked what it would have said h steps earlier, and the errors go into a small matrix per block of
// horizons. No projection has to be stored until its time has come, and no value can leak into its own forecast.
//
// The package knows nothing of services and portraits: values in, values out. It stands at the bottom of the import order, because
// folding (package portrait) learns with it and projecting (package forecast) speaks with it.
//
// # Sources
//
//   - Weights by minimum variance of past errors: J. M. Bates, C. W. J. Granger, "The combination of forecasts", 1969; shrunk towards
//     inverse errors as in J. Smith, K. F. Wallis, "A simple explanation of the forecast combination puzzle", 2009.
//   - Double-seasonal smoothing: J. W. Taylor, "Short-term electricity demand forecasting using double seasonal exponential smoothing", 2003.
//   - Regressions pulled towards what kin know: A. E. Hoerl, R. W. Kennard, "Ridge regression", 1970; many series in one model, grouped by
//     their traits: P. Montero-Manso, R. J. Hyndman, "Principles and algorithms for forecasting groups of time series", 2021.
//   - Days like the last ones: E. Lorenz, "Atmospheric predictability as revealed by naturally occurring analogues", 1969.
//   - Linear season-aligned forecasts do best on cloud load: W. Toner et al., arXiv:2502.12944, 2025.
//   - Quantiles of past misses, conformal style: V. Vovk et al., "Algorithmic Learning in a Random World", 2005.
//   - Mixtures of quantiles: K. C. Lichtendahl et al., "Is it better to average probabilities or quantiles?", 2013; their weights: J.
//     Berrisch, F. Ziel, "CRPS learning", 2021.
//   - Seasonal naive and the drift of its level: R. J. Hyndman, G. Athanasopoulos, "Forecasting: Principles and Practice", 3rd ed., 5.2.
package model
