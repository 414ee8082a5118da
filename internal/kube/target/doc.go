// Package target reads what an ElasticService scales by its scale subresource: which resource a kind is, what its Scale
// says, what its pods ask for, and which rights the controller needs on it. No I/O happens here but discovery.
package target
