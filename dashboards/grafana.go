package dashboards

import "encoding/json"

// Panel is one chart of a dashboard.
type Panel struct {
	Title, Description string
	// Unit is Grafana's name of the unit.
	Unit string
	// Kind is "timeseries", "stat" or "table".
	Kind    string
	Width   int // of 24
	Stacked bool
	// Sparse panels are empty while there is nothing to show, as without waiting jobs.
	Sparse  bool
	Queries []Query
}

// Query is one line of a chart.
type Query struct{ Expr, Legend string }

// Dashboard is a page of panels.
type Dashboard struct {
	UID, Title, Description string
	Rows                    []Row
}

// Row is a titled group of panels.
type Row struct {
	Title  string
	Panels []Panel
}

const (
	panelHeight = 8
	gridWidth   = 24
)

// object is a piece of Grafana's JSON model.
type object map[string]any

var datasource = object{"type": "prometheus", "uid": "${datasource}"}

// JSON renders the dashboard in Grafana's model. Maps marshal with sorted keys, so equal dashboards give equal bytes.
func (d Dashboard) JSON() ([]byte, error) {
	var panels []object
	id, y := 0, 0
	for _, row := range d.Rows {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": row.Title, "collapsed": false,
			"gridPos": object{"h": 1, "w": gridWidth, "x": 0, "y": y}})
		y++
		x := 0
		for _, p := range row.Panels {
			if x+p.Width > gridWidth {
				x, y = 0, y+panelHeight
			}
			id++
			panels = append(panels, p.object(id, x, y))
			x += p.Width
		}
		y += panelHeight
	}
	return marshal(object{
		"uid": d.UID, "title": d.Title, "description": d.Description, "tags": []string{"springtide"}, "schemaVersion": 39, "editable": true,
		"refresh": "30s", "time": object{"from": "now-24h", "to": "now"}, "timezone": "browser", "panels": panels,
		"templating": object{"list": []object{
			{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
			// Grafana adds these filters to every query of the page: a source may hold several clusters.
			{"name": "filters", "type": "adhoc", "label": "Filters", "datasource": datasource, "filters": []object{}},
		}},
	})
}

func (p Panel) object(id, x, y int) object {
	targets := make([]object, len(p.Queries))
	for i, q := range p.Queries {
		targets[i] = object{"refId": string(rune('A' + i)), "expr": q.Expr, "legendFormat": q.Legend, "datasource": datasource,
			"instant": p.Kind == "table"}
		if p.Kind == "table" {
			targets[i]["format"] = "table"
		}
	}
	custom := object{"lineWidth": 1, "fillOpacity": 8, "showPoints": "never"}
	if p.Stacked {
		custom["stacking"] = object{"mode": "normal"}
		custom["fillOpacity"] = 40
	}
	return object{"id": id, "type": p.Kind, "title": p.Title, "description": p.Description, "datasource": datasource, "targets": targets,
		"gridPos":     object{"h": panelHeight, "w": p.Width, "x": x, "y": y},
		"fieldConfig": object{"defaults": object{"unit": p.Unit, "min": 0, "custom": custom}, "overrides": []object{}},
		"options":     object{"legend": object{"displayMode": "list", "placement": "bottom"}},
	}
}

func marshal(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// Panels lists every panel of the dashboard.
func (d Dashboard) Panels() []Panel {
	var out []Panel
	for _, r := range d.Rows {
		out = append(out, r.Panels...)
	}
	return out
}
