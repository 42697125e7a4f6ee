// Signatures after Apple's documentation, with the isolation that Xcode 16 gave them (View is of the main actor).
@_exported import UIKit
@_exported import CoreGraphics
@_exported import Foundation
@_exported import Dispatch

// Combine
public protocol ObservableObject: AnyObject {}
@propertyWrapper public struct Published<Value> {
    public var wrappedValue: Value
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
    public init(initialValue: Value) { wrappedValue = initialValue }
}
// values
public struct Color: View, ShapeStyle, Sendable {
    public static let white = Color(), black = Color()
    public func opacity(_ opacity: Double) -> Color { self }
    public typealias Body = Never
}
public protocol ShapeStyle: Sendable {}
extension ShapeStyle where Self == Color { public static var white: Color { Color() } ; public static var black: Color { Color() } }
public struct Font: Hashable, Sendable {
    public enum TextStyle: Sendable { case body, footnote, title }
    public enum Design: Sendable { case monospaced, `default` }
    public enum Weight: Sendable { case regular }
    public static let footnote = Font()
    public static func system(_ style: TextStyle, design: Design? = nil, weight: Weight? = nil) -> Font { Font() }
}
public struct Alignment: Equatable, Sendable { public static let leading = Alignment(), trailing = Alignment(), bottom = Alignment(), center = Alignment() }
public enum HorizontalAlignment: Sendable { case leading, center, trailing }
public enum VerticalAlignment: Sendable { case top, center, bottom }
public enum Edge: Sendable {
    case top
    public struct Set: OptionSet, Sendable { public let rawValue: Int8; public init(rawValue: Int8) { self.rawValue = rawValue }
        public static let top = Set(rawValue: 1), all = Set(rawValue: 15) }
}
public struct SafeAreaRegions: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let all = SafeAreaRegions(rawValue: 255) }
public struct Axis: Sendable { public struct Set: OptionSet, Sendable { public let rawValue: Int8; public init(rawValue: Int8) { self.rawValue = rawValue }
    public static let vertical = Set(rawValue: 1) } }
public struct LocalizedStringKey: ExpressibleByStringInterpolation, Sendable { public init(stringLiteral value: String) {} }
// state
@propertyWrapper public struct State<Value> {
    public init(wrappedValue: Value) { self.wrappedValueStored = wrappedValue }
    var wrappedValueStored: Value
    public var wrappedValue: Value { get { wrappedValueStored } nonmutating set {} }
    public var projectedValue: Binding<Value> { Binding() }
}
extension State: Sendable where Value: Sendable {}
@propertyWrapper @dynamicMemberLookup public struct Binding<Value> {
    public init() {}
    public var wrappedValue: Value { get { fatalError() } nonmutating set {} }
    public var projectedValue: Binding<Value> { self }
    public subscript<Subject>(dynamicMember keyPath: WritableKeyPath<Value, Subject>) -> Binding<Subject> { Binding<Subject>() }
}
extension Binding: @unchecked Sendable where Value: Sendable {}
@MainActor @preconcurrency @propertyWrapper public struct StateObject<ObjectType: ObservableObject> {
    nonisolated public init(wrappedValue thunk: @autoclosure @escaping () -> ObjectType) {}

    @MainActor @preconcurrency public var wrappedValue: ObjectType { fatalError() }
}
// views
@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder @MainActor @preconcurrency var body: Self.Body { get }
}
extension Never: View { public typealias Body = Never ; public var body: Never { fatalError() } }
extension View where Body == Never { public var body: Never { fatalError() } }
public struct EmptyView: View { nonisolated public init() {} ; public typealias Body = Never }
public struct TupleView<T>: View { public typealias Body = Never ; nonisolated init() {} }
public struct Conditional<A: View, B: View>: View { public typealias Body = Never ; nonisolated init() {} }
@resultBuilder public struct ViewBuilder {
    public static func buildBlock() -> EmptyView { EmptyView() }
    public static func buildExpression<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<each Content: View>(_ content: repeat each Content) -> TupleView<(repeat each Content)> { TupleView() }
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
    public static func buildEither<A: View, B: View>(first: A) -> Conditional<A, B> { Conditional() }
    public static func buildEither<A: View, B: View>(second: B) -> Conditional<A, B> { Conditional() }
}
extension Optional: View where Wrapped: View { public typealias Body = Never }
public struct Text: View, Equatable, Sendable {
    public init(_ key: LocalizedStringKey, tableName: String? = nil) {}
    @_disfavoredOverload public init<S: StringProtocol>(_ content: S) {}
    public init(verbatim: String) {}
    public func font(_ font: Font?) -> Text { self }
    public typealias Body = Never
}
public struct Label<Title: View, Icon: View>: View { public typealias Body = Never }
extension Label where Title == Text, Icon == EmptyView {
    nonisolated public init(_ key: LocalizedStringKey, systemImage name: String) {}
    @_disfavoredOverload nonisolated public init<S: StringProtocol>(_ title: S, systemImage name: String) {}
}
public struct Spacer: View { nonisolated public init(minLength: CGFloat? = nil) {} ; public typealias Body = Never }
public struct VStack<Content: View>: View { public typealias Body = Never
    nonisolated public init(alignment: HorizontalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content) {} }
public struct HStack<Content: View>: View { public typealias Body = Never
    nonisolated public init(alignment: VerticalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content) {} }
public struct ZStack<Content: View>: View { public typealias Body = Never
    nonisolated public init(alignment: Alignment = .center, @ViewBuilder content: () -> Content) {} }
public struct ScrollView<Content: View>: View { public typealias Body = Never
    nonisolated public init(_ axes: Axis.Set = .vertical, showsIndicators: Bool = true, @ViewBuilder content: () -> Content) {} }
public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content> {}
extension ForEach: View where Content: View { public typealias Body = Never }
extension ForEach where ID == Data.Element.ID, Content: View, Data.Element: Identifiable {
    nonisolated public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) {}
}
public struct TabView<SelectionValue: Hashable, Content: View>: View { public typealias Body = Never }
extension TabView where SelectionValue == Int { nonisolated public init(@ViewBuilder content: () -> Content) {} }
public struct Button<Label: View>: View { public typealias Body = Never }
extension Button where Label == Text {
    nonisolated public init(_ key: LocalizedStringKey, action: @escaping @MainActor () -> Void) {}
    @_disfavoredOverload nonisolated public init<S: StringProtocol>(_ title: S, action: @escaping @MainActor () -> Void) {}
}
@MainActor @preconcurrency public protocol PrimitiveButtonStyle {}
public struct BorderedProminentButtonStyle: PrimitiveButtonStyle { nonisolated public init() {} }
extension PrimitiveButtonStyle where Self == BorderedProminentButtonStyle { public static var borderedProminent: BorderedProminentButtonStyle { BorderedProminentButtonStyle() } }
public struct Modified: View { nonisolated init() {} ; public typealias Body = Never }
extension View {
    nonisolated public func buttonStyle<S: PrimitiveButtonStyle>(_ style: S) -> some View { Modified() }
    nonisolated public func disabled(_ disabled: Bool) -> some View { Modified() }
    nonisolated public func font(_ font: Font?) -> some View { Modified() }
    nonisolated public func frame(width: CGFloat? = nil, height: CGFloat? = nil, alignment: Alignment = .center) -> some View { Modified() }
    nonisolated public func frame(minWidth: CGFloat? = nil, idealWidth: CGFloat? = nil, maxWidth: CGFloat? = nil, minHeight: CGFloat? = nil,
        idealHeight: CGFloat? = nil, maxHeight: CGFloat? = nil, alignment: Alignment = .center) -> some View { Modified() }
    nonisolated public func padding(_ edges: Edge.Set = .all, _ length: CGFloat? = nil) -> some View { Modified() }
    nonisolated public func foregroundColor(_ color: Color?) -> some View { Modified() }
    nonisolated public func background<S: ShapeStyle>(_ style: S, ignoresSafeAreaEdges edges: Edge.Set = .all) -> some View { Modified() }
    nonisolated public func ignoresSafeArea(_ regions: SafeAreaRegions = .all, edges: Edge.Set = .all) -> some View { Modified() }
    nonisolated public func onAppear(perform action: (() -> Void)? = nil) -> some View { Modified() }
    nonisolated public func onDisappear(perform action: (() -> Void)? = nil) -> some View { Modified() }
    nonisolated public func onChange<V: Equatable>(of value: V, initial: Bool = false, _ action: @escaping (_ old: V, _ new: V) -> Void) -> some View { Modified() }
    nonisolated public func onChange<V: Equatable>(of value: V, initial: Bool = false, _ action: @escaping () -> Void) -> some View { Modified() }
    nonisolated public func tabItem<V: View>(@ViewBuilder _ label: () -> V) -> some View { Modified() }
}
// apps
@MainActor @preconcurrency public protocol Scene { associatedtype Body: Scene ; @SceneBuilder @MainActor @preconcurrency var body: Self.Body { get } }
extension Never: Scene {}
extension Scene where Body == Never { public var body: Never { fatalError() } }
@resultBuilder public struct SceneBuilder { public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content } }
public struct WindowGroup<Content: View>: Scene { public typealias Body = Never ; nonisolated public init(@ViewBuilder content: () -> Content) {} }
@MainActor @preconcurrency public protocol App { associatedtype Body: Scene ; @SceneBuilder @MainActor @preconcurrency var body: Self.Body { get } ; @MainActor @preconcurrency init() }
extension App { @MainActor @preconcurrency public static func main() {} }
// UIKit in SwiftUI
public struct UIViewRepresentableContext<Representable: UIViewRepresentable> { public let coordinator: Representable.Coordinator }
@MainActor @preconcurrency public protocol UIViewRepresentable: View where Body == Never {
    associatedtype UIViewType: UIView ; associatedtype Coordinator = Void
    func makeUIView(context: Context) -> UIViewType
    func updateUIView(_ uiView: UIViewType, context: Context)
    func makeCoordinator() -> Coordinator
    typealias Context = UIViewRepresentableContext<Self>
}
extension UIViewRepresentable where Coordinator == Void { public func makeCoordinator() {} }
// CoreTransferable
public protocol Transferable: Sendable {}
extension Data: Transferable {}
