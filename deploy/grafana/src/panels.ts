// The few kinds of panels that all dashboards are made of. Every panel asks the data source the viewer
// chose, has a unit, and every series of it a legend; tests/engines/test_dashboards.py holds them to that.
import type { Builder } from "@grafana/grafana-foundation-sdk/cog";
import {
  BigValueColorMode,
  BigValueGraphMode,
  BigValueTextMode,
  type DataSourceRef,
  LegendDisplayMode,
  LegendPlacement,
  LineInterpolation,
  ReduceDataOptionsBuilder,
  VizLegendOptionsBuilder,
} from "@grafana/grafana-foundation-sdk/common";
import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DatasourceVariableBuilder,
  type Panel,
  QueryVariableBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  VariableRefresh,
  VariableSort,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder, PromQueryFormat } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder as StatPanel } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as TimelinePanel } from "@grafana/grafana-foundation-sdk/statetimeline";
import { PanelBuilder as TablePanel } from "@grafana/grafana-foundation-sdk/table";
import { PanelBuilder as TimePanel } from "@grafana/grafana-foundation-sdk/timeseries";

export interface Query {
  readonly expr: string;
  readonly legend: string;
}

export interface About {
  readonly title: string;
  readonly description: string;
  readonly unit: string;
  // Of 24 columns.
  readonly width: number;
}

const source: DataSourceRef = { type: "prometheus", uid: "$datasource" };
const chartHeight = 8;
const statHeight = 4;

const letters = "ABCDEFGH";

function target(query: Query, index: number): DataqueryBuilder {
  return new DataqueryBuilder()
    .refId(letters.charAt(index))
    .datasource(source)
    .expr(query.expr)
    .legendFormat(query.legend);
}

// Curves over time.
export function chart(about: About, ...queries: readonly Query[]): Builder<Panel> {
  const panel = new TimePanel()
    .title(about.title)
    .description(about.description)
    .datasource(source)
    .unit(about.unit)
    .min(0)
    .height(chartHeight)
    .span(about.width)
    .lineInterpolation(LineInterpolation.Linear)
    .fillOpacity(8)
    .legend(
      new VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .calcs([]),
    );
  queries.forEach((query, index) => panel.withTarget(target(query, index).range()));
  return panel;
}

// A number now; red from `bad` on, if there is such a number.
export function number(about: About, query: Query, bad: number | null): Builder<Panel> {
  const green = { value: null, color: "green" };
  const steps = bad === null ? [green] : [green, { value: bad, color: "red" }];
  return new StatPanel()
    .title(about.title)
    .description(about.description)
    .datasource(source)
    .unit(about.unit)
    .height(statHeight)
    .span(about.width)
    .colorMode(bad === null ? BigValueColorMode.None : BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.None)
    .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps))
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(["lastNotNull"]).values(false).fields(""))
    .withTarget(target(query, 0).instant());
}

// The name of the series that is there now.
export function word(about: About, query: Query): Builder<Panel> {
  return new StatPanel()
    .title(about.title)
    .description(about.description)
    .datasource(source)
    .unit(about.unit)
    .height(statHeight)
    .span(about.width)
    .textMode(BigValueTextMode.Name)
    .colorMode(BigValueColorMode.None)
    .graphMode(BigValueGraphMode.None)
    .withTarget(target(query, 0).instant());
}

// Which series was at which value when.
export function timeline(about: About, query: Query): Builder<Panel> {
  return new TimelinePanel()
    .title(about.title)
    .description(about.description)
    .datasource(source)
    .unit(about.unit)
    .height(chartHeight)
    .span(about.width)
    .mergeValues(true)
    .thresholds(
      new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps([
        { value: null, color: "red" },
        { value: 1, color: "green" },
      ]),
    )
    .withTarget(target(query, 0).range());
}

function rows(about: About, query: Query): TablePanel {
  return new TablePanel()
    .title(about.title)
    .description(about.description)
    .datasource(source)
    .unit(about.unit)
    .height(chartHeight)
    .span(about.width)
    .withTarget(target(query, 0).instant().format(PromQueryFormat.Table));
}

// One row per series, its labels as columns.
export function table(about: About, query: Query): Builder<Panel> {
  return rows(about, query);
}

// One cell per series: the labels `row` and `column` say where.
export function matrix(about: About, query: Query, row: string, column: string): Builder<Panel> {
  return rows(about, query).withTransformation({
    id: "groupingToMatrix",
    options: { rowField: row, columnField: column, valueField: "Value", emptyValue: "null" },
  });
}

// A mark on every chart while `expr` has a series.
export function mark(name: string, color: string, expr: string, title: string): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource(source)
    .enable(true)
    .iconColor(color)
    .expr(expr)
    .titleFormat(title)
    .step("1s");
}

// An empty dashboard of the family: links between its members are by the tag.
export function board(uid: string, title: string, description: string): DashboardBuilder {
  return new DashboardBuilder(`PERCS: ${title}`)
    .uid(`percs-${uid}`)
    .description(description)
    .tags(["percs"])
    .timezone("browser")
    .time({ from: "now-15m", to: "now" })
    .refresh("5s")
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .withVariable(new DatasourceVariableBuilder("datasource").label("Prometheus").type("prometheus"));
}

// Which hub: the names of the places that report.
export function hubVariable(): QueryVariableBuilder {
  return new QueryVariableBuilder("hub")
    .label("Hub")
    .datasource(source)
    .query("label_values(percs_packets_created_total, hub)")
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.NaturalAsc);
}
